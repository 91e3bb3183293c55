#include "clients/c/gemmctl/load.h"

#include "clients/c/gemmctl/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SHAPE "512x512"

static void add_words(struct gm_load *load, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_words(struct gm_load *load, const char *format, ...)
{
    size_t len = strlen(load->what);
    va_list args;

    va_start(args, format);
    vsnprintf(load->what + len, sizeof load->what - len, format, args);
    va_end(args);
}

/* ---- random operands ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* One element: a number in (-1, 1) of floating-point types, -8 to 7 of integers, else any bytes. */
static void random_element(enum gemmd_dtype dtype, size_t size, uint64_t *state, void *out)
{
    uint64_t bits[2] = {next_random(state), next_random(state)};
    double number = (double)(int64_t)bits[0] / 9223372036854775808.0;
    float single = (float)number;
    uint16_t half;

    switch (dtype) {
    case GEMMD_F64:
        memcpy(out, &number, size);
        return;
    case GEMMD_F32:
        memcpy(out, &single, size);
        return;
    case GEMMD_F16: /* 0.5 to 1, of either sign */
        half = (uint16_t)(0x3800 | (bits[0] & 0x83ff));
        memcpy(out, &half, size);
        return;
    case GEMMD_BF16:
        half = (uint16_t)(0x3f00 | (bits[0] & 0x807f));
        memcpy(out, &half, size);
        return;
    case GEMMD_BOOL:
        bits[0] &= 1;
        break;
    case GEMMD_I32:
    case GEMMD_I64:
        bits[0] = (bits[0] & 15) - 8;
        break;
    default:
        break;
    }
    memcpy(out, bits, size);
}

/* false where the text is no shape, or one of too many bytes. */
static bool read_shape(const char *text, size_t element, uint64_t dim[3], unsigned *ret_ndim,
                       uint64_t *ret_bytes)
{
    uint64_t bytes = element;
    unsigned ndim = 0;

    do {
        char *end;
        if (ndim == 3 || *text < '0' || *text > '9')
            return false;
        dim[ndim] = strtoull(text, &end, 10);
        if (__builtin_mul_overflow(bytes, dim[ndim], &bytes) || bytes > INT64_MAX)
            return false;
        ndim++;
        text = end;
    } while (*text == 'x' && text++);
    *ret_ndim = ndim;
    *ret_bytes = bytes;
    return *text == '\0' && ndim >= 2;
}

static enum gm_exit make_operand(struct gm_load *load, size_t i, const char *shape,
                                 enum gemmd_dtype dtype)
{
    size_t element = gemmd_dtype_size(dtype);
    uint64_t dim[3], bytes, state = i + 1;
    unsigned ndim;

    if (!read_shape(shape, element, dim, &ndim, &bytes))
        return gm_say_wrong(GM_EXIT_USAGE, "%s is no shape, as 512x512", shape);
    char *memory = malloc((size_t)bytes + 1);
    if (!memory)
        return gm_say_wrong(GM_EXIT_FILE, "there is no memory for an operand of %" PRIu64 " bytes",
                            bytes);
    for (uint64_t at = 0; at < bytes; at += element)
        random_element(dtype, element, &state, memory + at);
    snprintf(load->shape[i], sizeof load->shape[i], "%s", shape);
    load->memory[i] = memory;
    load->count = i + 1;
    load->bytes += bytes;
    load->source[i] = (struct gemmd_source){.type = "application/octet-stream",
                                            .origin = GEMMD_FROM_MEMORY,
                                            .data = memory,
                                            .size = bytes};
    return GM_EXIT_OK;
}

/* Its shape with the last two sizes exchanged. */
static void swapped(const char *shape, char *out, size_t size)
{
    uint64_t dim[3] = {0}, bytes;
    unsigned ndim;

    snprintf(out, size, "%s", shape);
    if (!read_shape(shape, 1, dim, &ndim, &bytes))
        return;
    if (ndim == 2)
        snprintf(out, size, "%" PRIu64 "x%" PRIu64, dim[1], dim[0]);
    else
        snprintf(out, size, "%" PRIu64 "x%" PRIu64 "x%" PRIu64, dim[0], dim[2], dim[1]);
}

/* As the daemon reads it. */
static bool is_true(const char *value)
{
    return value && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

/* The shape of a b that fits to a, so that a product is square: that of a transposed. Where one of
 * them alone is multiplied as its transpose, that is how it is stored. */
static void fitting(const struct gm_options *options, const char *shape_a, char *out, size_t size)
{
    bool transa = is_true(gm_options_parameter(options, "transa"));
    bool transb = is_true(gm_options_parameter(options, "transb"));

    if (transa == transb)
        swapped(shape_a, out, size);
    else
        snprintf(out, size, "%s", shape_a);
}

static enum gm_exit make_random(struct gm_load *load, struct gm_options *options, const char *op)
{
    static const char *const names[GM_OPERANDS_MAX] = {"shape_a", "shape_b", "shape_c"};
    const char *dtype_name = gm_options_parameter(options, "dtype");
    enum gemmd_dtype dtype = gemmd_dtype_from_name(dtype_name ? dtype_name : "f32");
    const char *shape_a = gm_options_parameter(options, "shape_a");
    const char *shape_c = gm_options_parameter(options, "shape_c");
    bool product = strcmp(op, "matmul") == 0, two = product || strcmp(op, "add") == 0;
    char other[64];

    if (dtype == GEMMD_DTYPE_NONE)
        return gm_say_wrong(GM_EXIT_USAGE, "--dtype: %s is no element type", dtype_name);
    if (!shape_a)
        shape_a = gm_options_parameter(options, "shape");
    if (!shape_a)
        shape_a = DEFAULT_SHAPE;
    bool stated =
        gm_options_parameter(options, "shape_a") || gm_options_parameter(options, "shape");
    fitting(options, shape_a, other, sizeof other);
    const char *shape_b = gm_options_parameter(options, "shape_b");
    const char *shapes[GM_OPERANDS_MAX] = {shape_a,
                                           shape_b   ? shape_b
                                           : product ? other
                                                     : shape_a,
                                           shape_c};
    size_t count = !two ? 1 : shape_c ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        enum gm_exit status = make_operand(load, i, shapes[i], dtype);
        if (status != GM_EXIT_OK)
            return status;
        bool there = i == 0 ? stated : gm_options_parameter(options, names[i]) != NULL;
        if (!there && !gm_options_add_parameter(options, names[i], load->shape[i]))
            return GM_EXIT_USAGE;
        add_words(load, "%s%s", i ? " and " : "", load->shape[i]);
    }
    add_words(load, " %s", gemmd_dtype_name(dtype));
    return dtype_name || gm_options_add_parameter(options, "dtype", gemmd_dtype_name(dtype))
               ? GM_EXIT_OK
               : GM_EXIT_USAGE;
}

/* ---- files ---- */

static enum gm_exit read_whole(struct gm_input *input, struct gemmd_source *source, void **ret)
{
    size_t len = 0, capacity = 1 << 16;
    char *memory = NULL;

    for (;;) {
        if (!memory || len == capacity) {
            capacity *= 2;
            char *larger = realloc(memory, capacity);
            if (!larger) {
                free(memory);
                return gm_say_wrong(GM_EXIT_FILE, "%s: out of memory", input->path);
            }
            memory = larger;
        }
        int64_t got = source->origin == GEMMD_FROM_CALLBACK
                          ? source->read(source->cls, memory + len, capacity - len)
                          : read(source->fd, memory + len, capacity - len);
        if (got < 0) {
            free(memory);
            return gm_say_wrong(GM_EXIT_FILE, "%s: %s", input->path, strerror(errno));
        }
        if (got == 0)
            break;
        len += (size_t)got;
    }
    *source = (struct gemmd_source){.name = source->name,
                                    .type = source->type,
                                    .origin = GEMMD_FROM_MEMORY,
                                    .data = memory,
                                    .size = len};
    *ret = memory;
    return GM_EXIT_OK;
}

static enum gm_exit read_files(struct gm_load *load, struct gm_options *options, char *const *paths,
                               size_t count)
{
    struct gm_inputs inputs;
    enum gm_exit status = gm_inputs_open(&inputs, options, paths, count);

    if (status == GM_EXIT_OK && !gm_inputs_share_shape(&inputs, options))
        status = GM_EXIT_USAGE;
    for (size_t i = 0; i < count; i++)
        add_words(load, "%s%s", i ? " and " : "", paths[i]);
    /* There are fewer inputs than paths where the daemon has an operand. */
    for (size_t i = 0; i < inputs.count && status == GM_EXIT_OK; i++) {
        load->source[i] = inputs.source[i];
        status = read_whole(&inputs.input[i], &load->source[i], &load->memory[i]);
        load->count = i + 1;
        load->bytes += status == GM_EXIT_OK ? load->source[i].size : 0;
    }
    gm_inputs_close(&inputs);
    return status;
}

enum gm_exit gm_load_make(struct gm_load *load, struct gm_options *options, const char *op,
                          char *const *paths, size_t count)
{
    *load = (struct gm_load){0};
    enum gm_exit status =
        count > 0 ? read_files(load, options, paths, count) : make_random(load, options, op);
    if (status != GM_EXIT_OK)
        gm_load_free(load);
    return status;
}

void gm_load_free(struct gm_load *load)
{
    for (size_t i = 0; i < GM_OPERANDS_MAX; i++)
        free(load->memory[i]);
    *load = (struct gm_load){0};
}
