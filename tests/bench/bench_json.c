/*
 * bench_json.c - reading and writing a million numbers as JSON: our codec beside jansson.
 *
 *   bench_json [--rounds N] [--json FILE]
 *
 * Both read the same text, and write the same matrix, in one process, in an order that changes
 * at random from round to round; a figure is the median of its rounds, in time of the processor, so
 * that other programs disturb little. First both are proved: what they read, and what is read back
 * from what they write, must be the matrix to the bit.
 *
 * jansson is given every advantage: it stops at its tree of values, which nobody has copied into
 * a matrix yet, that tree is freed while no clock runs, and of an f32 it writes the 9 digits that
 * suffice, not 17. Our reading includes the copying; its storage is there before, as in a server
 * that reuses it.
 */
#include "proto/codec.h"
#include "tests/unit/operands.h"

#include <jansson.h>
#include <math.h>
#include <time.h>

#define SIDE 1000u
#define ELEMENTS ((uint64_t)SIDE * SIDE)
#define ROUNDS_MAX 101

enum worker { OURS_IN, JANSSON_IN, OURS_OUT, JANSSON_OUT, WORKERS };

struct bench {
    unsigned rounds;
    const char *json;
    uint64_t random;
    json_t *results;
};

/* One matrix, and what reads and writes it. */
struct contest {
    struct gm_matrix matrix;
    void *storage;   /* what our codec reads into */
    char *rows;      /* the text that both read: the matrix as rows */
    size_t rows_len; /* followed by GM_TEXT_PADDING bytes */
    char *out;       /* what our codec writes into */
    uint64_t out_bound, out_len;
    size_t jansson_flags, jansson_len;
    json_t *tree; /* what jansson writes */
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_json: %s: %s\n", what, detail);
    exit(1);
}

static void *take(uint64_t bytes)
{
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (!data)
        die("memory", "there is none");
    memset(data, 0xFF, bytes); /* NaN; and no page is touched first while a clock runs */
    return data;
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double value_at(const struct gm_matrix *matrix, uint64_t i)
{
    return matrix->dtype == GM_F64 ? ((double *)matrix->data)[i] : ((float *)matrix->data)[i];
}

/* All bit patterns that are numbers, of any size: the digits and exponents of the worst case. */
static void fill_any(uint64_t *random, struct gm_matrix *matrix)
{
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        do {
            uint64_t bits = check_random(random);
            memcpy((char *)matrix->data + i * gm_dtype_size(matrix->dtype), &bits,
                   gm_dtype_size(matrix->dtype));
        } while (!isnormal(value_at(matrix, i)));
    }
}

static enum gm_status give_storage(void *cls, unsigned index, const struct gm_matrix *matrix,
                                   void **ret_data, struct gm_error *err)
{
    struct contest *c = cls;

    if (index != 0 || gm_matrix_bytes(matrix) != gm_matrix_bytes(&c->matrix))
        return gm_fail(err, GM_INTERNAL, "another matrix than was written");
    *ret_data = c->storage;
    return GM_OK;
}

static enum gm_status no_parameter(void *cls, const char *name, size_t name_len, const char *value,
                                   size_t value_len, struct gm_error *err)
{
    (void)cls, (void)name, (void)name_len, (void)value, (void)value_len;
    return gm_fail(err, GM_INTERNAL, "a parameter among rows");
}

static void ours_in(struct contest *c)
{
    const struct gm_decode_plan plan = {.dtype = c->matrix.dtype,
                                        .operands_max = 1,
                                        .body_bytes = c->rows_len,
                                        .sink = {give_storage, no_parameter, c}};
    struct gm_error err;

    if (gm_codec_json.decode(c->rows, c->rows_len, &plan, &err) != GM_OK)
        die("our codec reads", err.detail);
}

static void ours_out(struct contest *c)
{
    const struct gm_encode_options options = {.nonfinite_null = false};
    struct gm_error err;

    if (gm_codec_json.encode(&c->matrix, &options, c->out, c->out_bound, &c->out_len, &err) !=
        GM_OK)
        die("our codec writes", err.detail);
}

static json_t *jansson_in(const char *text, size_t len)
{
    json_error_t error;
    json_t *tree = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, &error);

    if (!tree)
        die("jansson reads", error.text);
    return tree;
}

static char *jansson_out(const struct contest *c)
{
    char *text = json_dumps(c->tree, c->jansson_flags);

    if (!text)
        die("jansson writes", "it does not");
    return text;
}

/* Seconds. */
static double timed(struct contest *c, enum worker worker)
{
    json_t *tree = NULL;
    char *text = NULL;
    double begin = seconds_now();

    if (worker == OURS_IN)
        ours_in(c);
    else if (worker == OURS_OUT)
        ours_out(c);
    else if (worker == JANSSON_IN)
        tree = jansson_in(c->rows, c->rows_len);
    else
        text = jansson_out(c);
    double took = seconds_now() - begin;
    json_decref(tree);
    free(text);
    return took;
}

/* Whether the tree is the matrix, to the bit. */
static bool same(const json_t *tree, const struct gm_matrix *matrix)
{
    bool is = json_array_size(tree) == SIDE;

    for (size_t r = 0; is && r < SIDE; r++) {
        const json_t *row = json_array_get(tree, r);
        is = json_array_size(row) == SIDE;
        for (size_t i = 0; is && i < SIDE; i++) {
            double read = json_number_value(json_array_get(row, i));
            if (matrix->dtype == GM_F32)
                read = (float)read;
            is = gm_f64_bits(read) == gm_f64_bits(value_at(matrix, r * SIDE + i));
        }
    }
    return is;
}

static void prove(struct contest *c)
{
    json_t *tree = jansson_in(c->rows, c->rows_len);
    char *text = jansson_out(c);

    if (!same(tree, &c->matrix))
        die("jansson read", "another matrix than our codec wrote");
    json_decref(tree);
    c->jansson_len = strlen(text);
    tree = jansson_in(text, c->jansson_len);
    if (!same(tree, &c->matrix))
        die("jansson wrote", "another matrix");
    json_decref(tree);
    free(text);
    ours_in(c);
    if (memcmp(c->storage, c->matrix.data, gm_matrix_bytes(&c->matrix)) != 0)
        die("our codec read", "another matrix");
}

/* The text of the rows alone, from what our codec writes: {..."data":[[...]] */
static void make_rows(struct contest *c)
{
    struct gm_error err;

    if (gm_codec_json.encode_bound(&c->matrix, &c->out_bound, &err) != GM_OK)
        die("the bound", err.detail);
    c->out = take(c->out_bound);
    ours_out(c);
    char *begin = memmem(c->out, c->out_len, "[[", 2);
    if (!begin)
        die("our codec wrote", "no rows");
    c->rows_len = c->out_len - (size_t)(begin - c->out);
    c->rows = take(c->rows_len + GM_TEXT_PADDING);
    memcpy(c->rows, begin, c->rows_len);
}

static void make_tree(struct contest *c)
{
    c->tree = json_array();
    for (size_t r = 0; r < SIDE; r++) {
        json_t *row = json_array();
        for (size_t i = 0; i < SIDE; i++)
            json_array_append_new(row, json_real(value_at(&c->matrix, r * SIDE + i)));
        json_array_append_new(c->tree, row);
    }
    c->jansson_flags =
        JSON_COMPACT | JSON_REAL_PRECISION((size_t)(c->matrix.dtype == GM_F64 ? 17 : 9));
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double mbs(double bytes, double seconds)
{
    return 1e-6 * bytes / seconds;
}

static double median(double *seconds, unsigned rounds)
{
    qsort(seconds, rounds, sizeof(double), by_size);
    return seconds[rounds / 2];
}

static void report(struct bench *bench, const struct contest *c, const char *values, bool in,
                   double *our_seconds, double *jansson_seconds)
{
    json_t *ratios = json_array();

    for (unsigned i = 0; i < bench->rounds; i++)
        json_array_append_new(ratios, json_real(jansson_seconds[i] / our_seconds[i]));
    double ours = median(our_seconds, bench->rounds);
    double jansson = median(jansson_seconds, bench->rounds);
    double our_bytes = (double)(in ? c->rows_len : c->out_len);
    double jansson_bytes = (double)(in ? c->rows_len : c->jansson_len);
    json_t *row = json_object();

    printf("%s %-4s %-9s ours %7.2f ms, %6.0f MB/s   jansson %7.2f ms, %6.0f MB/s   %5.1f times\n",
           in ? "in " : "out", gm_dtype_name(c->matrix.dtype), values, 1e3 * ours,
           mbs(our_bytes, ours), 1e3 * jansson, mbs(jansson_bytes, jansson), jansson / ours);
    json_object_set_new(row, "direction", json_string(in ? "in" : "out"));
    json_object_set_new(row, "dtype", json_string(gm_dtype_name(c->matrix.dtype)));
    json_object_set_new(row, "values", json_string(values));
    json_object_set_new(row, "bytes", json_integer((json_int_t)our_bytes));
    json_object_set_new(row, "jansson_bytes", json_integer((json_int_t)jansson_bytes));
    json_object_set_new(row, "median_us", json_real(1e6 * ours));
    json_object_set_new(row, "jansson_median_us", json_real(1e6 * jansson));
    json_object_set_new(row, "mbs", json_real(mbs(our_bytes, ours)));
    json_object_set_new(row, "jansson_mbs", json_real(mbs(jansson_bytes, jansson)));
    json_object_set_new(row, "ratio", json_real(jansson / ours));
    json_object_set_new(row, "ratios", ratios); /* of each round */
    json_array_append_new(bench->results, row);
}

static void measure(struct bench *bench, struct contest *c, const char *values)
{
    double seconds[WORKERS][ROUNDS_MAX];

    for (unsigned round = 0; round < bench->rounds; round++) {
        enum worker order[WORKERS] = {OURS_IN, JANSSON_IN, OURS_OUT, JANSSON_OUT};
        for (unsigned i = WORKERS; i > 0; i--) { /* Fisher and Yates */
            uint64_t pick = random_below(&bench->random, i);
            enum worker worker = order[pick];
            order[pick] = order[i - 1];
            seconds[worker][round] = timed(c, worker);
        }
    }
    report(bench, c, values, true, seconds[OURS_IN], seconds[JANSSON_IN]);
    report(bench, c, values, false, seconds[OURS_OUT], seconds[JANSSON_OUT]);
}

static void contest(struct bench *bench, enum gm_dtype dtype, bool any)
{
    const struct gm_shape shape = {2, {SIDE, SIDE}};
    struct contest c = {0};
    struct gm_error err;

    if (gm_matrix_init(&c.matrix, dtype, GM_ROW_MAJOR, &shape, &err) != GM_OK)
        die("a matrix", err.detail);
    c.matrix.data = take(gm_matrix_bytes(&c.matrix));
    c.storage = take(gm_matrix_bytes(&c.matrix));
    if (any)
        fill_any(&bench->random, &c.matrix);
    else
        random_fill(&bench->random, dtype, c.matrix.data, ELEMENTS);
    make_rows(&c);
    make_tree(&c);
    prove(&c);
    measure(bench, &c, any ? "any" : "-1 to 1");
    json_decref(c.tree);
    free(c.out);
    free(c.rows);
    free(c.storage);
    free(c.matrix.data);
}

/* The first line of what a command prints, or of a file. */
static void first_line(const char *command, char *text, size_t size)
{
    FILE *from = popen(command, "r");

    snprintf(text, size, "unknown");
    if (from && fgets(text, (int)size, from))
        text[strcspn(text, "\n")] = '\0';
    if (from)
        pclose(from);
}

static void write_json(const struct bench *bench)
{
    char commit[64], cpu[128], date[32];
    time_t now = time(NULL);
    struct tm utc;
    json_t *document = json_object();

    first_line("git -C " GM_SOURCE_DIR " describe --always --dirty 2>/dev/null", commit,
               sizeof(commit));
    first_line("sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo", cpu, sizeof(cpu));
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    json_object_set_new(document, "benchmark", json_string("bench_json"));
    json_object_set_new(document, "date", json_string(date));
    json_object_set_new(document, "commit", json_string(commit));
    json_object_set_new(document, "device", json_string(cpu));
    json_object_set_new(document, "jansson", json_string(jansson_version_str()));
    json_object_set_new(document, "elements", json_integer((json_int_t)ELEMENTS));
    json_object_set_new(document, "rounds", json_integer(bench->rounds));
    json_object_set(document, "results", bench->results);
    if (json_dump_file(document, bench->json, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0)
        die(bench->json, "cannot be written");
    json_decref(document);
}

static void parse_arguments(struct bench *bench, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--json") == 0)
            bench->json = value;
        else if (value && strcmp(argv[i], "--rounds") == 0)
            bench->rounds = (unsigned)strtoul(value, NULL, 10);
        else
            die(argv[i], "usage: bench_json [--rounds N] [--json FILE]");
    }
    if (bench->rounds < 1 || bench->rounds > ROUNDS_MAX)
        die("--rounds", "1 to 101");
}

int main(int argc, char **argv)
{
    struct bench bench = {.rounds = 15, .random = check_seed(), .results = json_array()};

    parse_arguments(&bench, argc, argv);
    printf("%" PRIu64 " numbers, medians of %u rounds, jansson %s\n", ELEMENTS, bench.rounds,
           jansson_version_str());
    for (int any = 0; any < 2; any++) {
        contest(&bench, GM_F32, any);
        contest(&bench, GM_F64, any);
    }
    if (bench.json)
        write_json(&bench);
    json_decref(bench.results);
    return 0;
}
