/*
 * kserve_region.c - reads a request to register a region of shared memory:
 *
 *   {"key":"/name","offset":0,"byte_size":4096}                                 of the system
 *   {"raw_handle":{"b64":"..."},"device_id":0,"byte_size":4096}                 of CUDA
 */
#include "proto/kserve/kserve.h"
#include "proto/number/number.h"

#include <string.h>

#define BASE64_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define BASE64_LEN ((GM_CUDA_HANDLE_BYTES + 2) / 3 * 4)

/* Decodes the handle, which has a fixed length; false if the text is none. */
static bool read_base64(const struct gm_json_string *text, unsigned char *out)
{
    static const char digits[] = BASE64_DIGITS;
    size_t padding = (3 - GM_CUDA_HANDLE_BYTES % 3) % 3, at = 0;
    uint32_t bits = 0;
    unsigned count = 0;

    if (text->len != BASE64_LEN)
        return false;
    for (size_t i = 0; i < BASE64_LEN - padding; i++) {
        const char *digit = text->text[i] ? strchr(digits, text->text[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 6 | (uint32_t)(digit - digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[at++] = (unsigned char)(bits >> count);
        }
    }
    for (size_t i = BASE64_LEN - padding; i < BASE64_LEN; i++)
        if (text->text[i] != '=')
            return false;
    return at == GM_CUDA_HANDLE_BYTES;
}

static enum gm_status read_count(struct gm_json *json, const char *name, uint64_t *ret)
{
    const char *end = gm_number_reader_of(GM_U64)(json->at, ret);

    if (!end)
        return gm_json_fail(json, json->at, "%s is a whole number", name);
    json->at = end;
    return GM_OK;
}

static enum gm_status read_key(struct gm_json *json, struct gm_kserve_region *ret)
{
    struct gm_json_string key;
    const char *at = json->at;

    if (gm_json_peek(json) != '"')
        return gm_json_fail(json, at, "key is the name of an object of shared memory");
    enum gm_status status = gm_json_string(json, &key);
    if (status == GM_OK &&
        (key.len == 0 || key.len >= sizeof ret->key || memchr(key.text, '\0', key.len)))
        return gm_json_fail(json, at, "key is a name of 1 to %d bytes", GM_REGION_NAME_MAX - 1);
    if (status == GM_OK)
        memcpy(ret->key, key.text, key.len + 1);
    return status;
}

/* {"b64":"..."} */
static enum gm_status read_handle(struct gm_json *json, struct gm_kserve_region *ret)
{
    struct gm_json_object object;
    const struct gm_json_string *name;
    struct gm_json_string text = {.len = 0};
    const char *begin = json->at;

    object.count = 0;
    if (gm_json_peek(json) != '{')
        return gm_json_fail(json, begin, "raw_handle is an object, {\"b64\":\"...\"}");
    for (;;) {
        enum gm_status status = gm_json_member(json, &object, &name);
        if (status != GM_OK)
            return status;
        if (!name)
            break;
        if (!gm_json_string_is(name, "b64") || gm_json_peek(json) != '"')
            return gm_json_fail(json, json->at, "raw_handle has one member, a string: b64");
        status = gm_json_string(json, &text);
        if (status != GM_OK)
            return status;
    }
    return read_base64(&text, ret->handle)
               ? GM_OK
               : gm_json_fail(json, begin, "b64 is the %d bytes of a cudaIpcMemHandle_t in base64",
                              GM_CUDA_HANDLE_BYTES);
}

/* Reads a member of either kind. *ret_bit tells which. */
static enum gm_status read_member(struct gm_json *json, const struct gm_json_string *name,
                                  struct gm_kserve_region *ret, unsigned *ret_seen)
{
    enum { OBJECT = 1, SIZE = 2 };

    if (gm_json_string_is(name, "byte_size")) {
        *ret_seen |= SIZE;
        return read_count(json, "byte_size", &ret->bytes);
    }
    if (!ret->on_device && gm_json_string_is(name, "key")) {
        *ret_seen |= OBJECT;
        return read_key(json, ret);
    }
    if (!ret->on_device && gm_json_string_is(name, "offset"))
        return read_count(json, "offset", &ret->offset);
    if (ret->on_device && gm_json_string_is(name, "raw_handle")) {
        *ret_seen |= OBJECT;
        return read_handle(json, ret);
    }
    if (ret->on_device && gm_json_string_is(name, "device_id"))
        return read_count(json, "device_id", &ret->device);
    return gm_json_fail(json, json->at, "a region has %s; not \"%.64s\"",
                        ret->on_device ? "raw_handle, device_id and byte_size"
                                       : "key, offset and byte_size",
                        name->text);
}

enum gm_status gm_kserve_read_region(const char *text, size_t len, bool on_device,
                                     struct gm_kserve_region *ret, struct gm_error *err)
{
    struct gm_kserve_region region = {.on_device = on_device};
    struct gm_json_object object;
    struct gm_json json;
    const struct gm_json_string *name;
    unsigned seen = 0;
    enum gm_status status = gm_json_begin(&json, text, len, err);

    object.count = 0;
    if (status == GM_OK && gm_json_peek(&json) != '{')
        status = gm_json_fail(&json, json.at, "a region is described by an object");
    do {
        if (status == GM_OK)
            status = gm_json_member(&json, &object, &name);
        if (status == GM_OK && name)
            status = read_member(&json, name, &region, &seen);
    } while (status == GM_OK && name);
    if (status == GM_OK)
        status = gm_json_end(&json);
    if (status != GM_OK)
        return status;
    if (seen != 3)
        return gm_json_fail(&json, json.at, "a region has %s and byte_size",
                            on_device ? "raw_handle" : "key");
    *ret = region;
    return GM_OK;
}
