/*
 * regions.c - registers, unregisters and lists regions of shared memory, over HTTP.
 *
 * The path has the region's name. Without one, status and unregister apply to all regions of the
 * client.
 */
#include "proto/kserve/kserve.h"
#include "server/request/request.h"
#include "server/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool is_cuda(const struct gm_request *r)
{
    return strncmp(r->head.path, "/v2/cuda", 8) == 0;
}

/* Reads the name in the path; *ret is "" if there is none. */
static enum gm_status name_of(const struct gm_request *r, char ret[GM_REGION_NAME_MAX],
                              struct gm_error *err)
{
    const char *at = strstr(r->head.path, "/region/");
    const char *begin = at ? at + strlen("/region/") : "";
    size_t len = strcspn(begin, "/");

    if (len >= GM_REGION_NAME_MAX)
        return gm_fail(err, GM_BAD_PARAMETER, "the name of a region has %d bytes at most",
                       GM_REGION_NAME_MAX - 1);
    json_t *text = json_stringn(begin, len);
    if (!text) /* else nothing could list it */
        return gm_fail(err, GM_BAD_PARAMETER, "the name of a region is not UTF-8");
    json_decref(text);
    memcpy(ret, begin, len);
    ret[len] = '\0';
    return GM_OK;
}

/* Replies with an empty body, like Triton. */
static enum gm_progress reply_done(struct gm_request *r)
{
    return gm_request_reply(r, "application/json", strdup(""));
}

static enum gm_progress register_region(struct gm_request *r)
{
    char name[GM_REGION_NAME_MAX];
    struct gm_kserve_region what;
    struct gm_error error;
    enum gm_status status = name_of(r, name, &error);

    if (status == GM_OK)
        status = gm_kserve_read_region(r->body.text.buffer.data, r->body.text_len, is_cuda(r),
                                       &what, &error);
    if (status == GM_OK)
        status = gm_region_register(&r->server->regions, r->head.client, r->caller.quota,
                                    r->caller.name, name, &what, &error);
    return status == GM_OK ? reply_done(r) : gm_request_fail(r, &error);
}

static enum gm_progress unregister_region(struct gm_request *r)
{
    char name[GM_REGION_NAME_MAX];
    struct gm_error error;
    enum gm_status status = name_of(r, name, &error);

    if (status == GM_OK)
        status = gm_region_unregister(&r->server->regions, r->head.client, is_cuda(r),
                                      *name ? name : NULL, &error);
    return status == GM_OK ? reply_done(r) : gm_request_fail(r, &error);
}

static void register_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    register_region(r);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

static void unregister_on_worker(struct gm_work *work)
{
    struct gm_request *r = gm_request_of_work(work);

    unregister_region(r);
    gm_request_resume(r, GM_REQUEST_REPLY);
}

/* Expected seconds on a worker: drivers need a good part of a second to pin a gigabyte. */
#define PIN_S 0.1

enum gm_progress gm_handle_region_register(struct gm_request *r)
{
    return gm_regions_pin(&r->server->regions) ? gm_request_to_worker(r, register_on_worker, PIN_S)
                                               : register_region(r);
}

enum gm_progress gm_handle_region_unregister(struct gm_request *r)
{
    return gm_regions_pin(&r->server->regions)
               ? gm_request_to_worker(r, unregister_on_worker, PIN_S)
               : unregister_region(r);
}

/* "owner" where the list is an admin's: else all are the client's own. */
static void add_owner(json_t *list, const struct gm_region_facts *facts)
{
    json_object_set_new(json_array_get(list, json_array_size(list) - 1), "owner",
                        json_string(facts->owner));
}

static void tell_system(void *cls, const struct gm_region_facts *facts)
{
    json_array_append_new(cls, json_pack("{s:s, s:s, s:I, s:I}", "name", facts->name, "key",
                                         facts->key, "offset", (json_int_t)facts->offset,
                                         "byte_size", (json_int_t)facts->bytes));
}

static void tell_system_all(void *cls, const struct gm_region_facts *facts)
{
    tell_system(cls, facts);
    add_owner(cls, facts);
}

static void tell_cuda(void *cls, const struct gm_region_facts *facts)
{
    json_array_append_new(cls, json_pack("{s:s, s:I, s:I}", "name", facts->name, "device_id",
                                         (json_int_t)facts->device, "byte_size",
                                         (json_int_t)facts->bytes));
}

static void tell_cuda_all(void *cls, const struct gm_region_facts *facts)
{
    tell_cuda(cls, facts);
    add_owner(cls, facts);
}

enum gm_progress gm_handle_region_status(struct gm_request *r)
{
    /* Without keys everybody has all roles, and regions are their address's all the same. */
    bool all = *r->caller.name && (r->caller.roles & GM_ROLE_ADMIN);
    char name[GM_REGION_NAME_MAX];
    struct gm_error error;
    json_t *list = json_array();
    enum gm_status status = name_of(r, name, &error);

    if (status == GM_OK)
        status = gm_region_list(
            &r->server->regions, r->head.client, all, is_cuda(r), *name ? name : NULL,
            is_cuda(r) ? (all ? tell_cuda_all : tell_cuda) : (all ? tell_system_all : tell_system),
            list, &error);
    r->caller.acted_as_admin = all;
    char *text = gm_document_text(list, JSON_COMPACT);
    if (status == GM_OK)
        return gm_request_reply(r, "application/json", text);
    free(text);
    return gm_request_fail(r, &error);
}
