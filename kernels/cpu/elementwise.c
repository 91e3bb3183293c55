/*
 * elementwise.c - runs programs (kernels/graph.h) on blocks of numbers, on all threads.
 *
 * A thread evaluates BLOCK numbers at a time, one instruction after another, in buffers that
 * stay in its first-level cache: memory sees each input once and the result once. An input that
 * lies as the block does is read in place; others are first gathered. The chunks follow from the
 * shape, and so does the order in which a reduction adds up.
 */
#include "kernels/cpu/backend/exec.h"
#include "kernels/cpu/lib/grid.h"
#include "kernels/cpu/lib/inner_loops.h"
#include "kernels/cpu/lib/stream.h"
#include "kernels/graph.h"

#include <string.h>

#define BLOCK ((uint64_t)512)
#define CHUNK ((uint64_t)1 << 16) /* elements; before each a thread looks whether to stop */

/* A thread's scratch: blocks of numbers of 8 bytes. Numbers of 4 take half of each. */
struct room {
    uint64_t x[BLOCK], loaded[2][BLOCK];
    uint64_t temporary[GM_PROGRAM_TEMPORARIES_MAX][BLOCK];
    uint64_t constant[GM_PROGRAM_CONSTANTS_MAX][BLOCK];
    union gm_number sums[BLOCK];
};
_Static_assert(sizeof(struct room) <= GM_CPU_SCRATCH, "it is what a thread has");

struct input {
    const char *data;
    int64_t stride[3]; /* of batch, row and col */
    size_t size;
    bool in_place; /* elements are numbers of the program */
    bool dense;    /* it lies as the whole space does */
    gm_convert_fn *load;
};

struct job {
    const struct gm_program *program;
    struct gm_exec *exec;
    uint64_t rows, cols; /* of the space */
    size_t number;       /* bytes of one */
    struct input input[GM_PROGRAM_INPUTS_MAX];
    gm_instruct_fn *instruct[GM_PROGRAM_CODE_MAX], *narrow[GM_PROGRAM_CODE_MAX];
    gm_convert_fn *store;
    bool in_place; /* the result's elements are numbers of the program */
    bool stream;
    uint64_t elements;
    /* Reductions. */
    gm_reduce_fn *reduce;
    gm_gather_fn *gather;
    struct gm_division parts;
    uint64_t per_chunk, bands, band; /* results of a chunk; bands of columns, and their width */
};

/* ---- Blocks. ---- */

/* Gathers `count` numbers from position `at` of the space on. */
static void gather(const struct job *job, const struct input *x, uint64_t at, uint64_t count,
                   char *to)
{
    uint64_t row = at / job->cols, j = at % job->cols;
    uint64_t t = row / job->rows, i = row % job->rows;

    while (count > 0) {
        uint64_t length = job->cols - j < count ? job->cols - j : count;
        int64_t first =
            (int64_t)t * x->stride[0] + (int64_t)i * x->stride[1] + (int64_t)j * x->stride[2];
        x->load(to, x->data + first * (int64_t)x->size, x->stride[2], length);
        to += length * job->number;
        count -= length;
        j = 0;
        if (++i == job->rows) {
            i = 0;
            t++;
        }
    }
}

/* Where the numbers of a source are: in place, or in `loaded`. */
static const void *source(const struct job *job, struct room *room, unsigned from, unsigned index,
                          uint64_t at, uint64_t count, uint64_t *loaded)
{
    if (from == GM_FROM_CONSTANT)
        return room->constant[index];
    if (from == GM_FROM_TEMPORARY)
        return room->temporary[index];
    const struct input *x = &job->input[index];
    if (x->in_place && x->dense)
        return x->data + at * x->size;
    uint64_t j = at % job->cols;
    if (x->in_place && x->stride[2] == 1 && count <= job->cols - j) { /* a part of a row */
        uint64_t row = at / job->cols;
        int64_t first = (int64_t)(row / job->rows) * x->stride[0] +
                        (int64_t)(row % job->rows) * x->stride[1] + (int64_t)j;
        return x->data + first * (int64_t)x->size;
    }
    if (x->dense)
        x->load(loaded, x->data + at * x->size, 1, count);
    else
        gather(job, x, at, count, (char *)loaded);
    return loaded;
}

/* Evaluates the program on `count` positions from `at` on: the numbers are in room->x. */
static void evaluate(const struct job *job, struct room *room, uint64_t at, uint64_t count)
{
    const struct gm_program *p = job->program;

    for (unsigned k = 0; k < p->code; k++) {
        const struct gm_instruction *in = &p->instruction[k];
        const void *y = NULL, *z = NULL;
        if (in->kind == GM_DO_STORE) {
            memcpy(room->temporary[in->index], room->x, count * job->number);
            continue;
        }
        if (in->kind <= GM_DO_WHERE)
            y = source(job, room, in->from, in->index, at, count, room->loaded[0]);
        if (in->kind == GM_DO_WHERE)
            z = source(job, room, in->from_z, in->index_z, at, count, room->loaded[1]);
        if (in->kind == GM_DO_LOAD)
            memcpy(room->x, y, count * job->number);
        else
            job->instruct[k](room->x, y, z, count);
        if (job->narrow[k])
            job->narrow[k](room->x, NULL, NULL, count);
    }
}

/* Writes the constants: a chunk's first step. */
static struct room *open_room(const struct job *job, unsigned thread)
{
    const struct gm_program *p = job->program;
    struct room *room = gm_pool_scratch(job->exec->pool, thread);

    for (unsigned k = 0; k < p->constants; k++) {
        if (p->compute_type == GM_COMPUTE_F32)
            for (uint64_t i = 0; i < BLOCK; i++)
                ((float *)room->constant[k])[i] = (float)p->constant[k].real;
        else
            for (uint64_t i = 0; i < BLOCK; i++)
                memcpy(&room->constant[k][i], &p->constant[k], sizeof p->constant[k]);
    }
    return room;
}

/* ---- Elementwise. ---- */

static void write_block(const struct job *job, struct room *room, uint64_t at, uint64_t count)
{
    size_t size = gm_dtype_size(job->program->dtype);
    char *to = (char *)job->program->result + at * size;
    const void *from = room->x;

    if (!job->in_place && job->stream) {
        job->store(room->loaded[0], room->x, 1, count);
        from = room->loaded[0];
    } else if (!job->in_place) {
        job->store(to, room->x, 1, count);
        return;
    }
    if (job->stream)
        gm_stream(to, from, count * size);
    else
        memcpy(to, from, count * size);
}

static void elementwise_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    struct room *room = open_room(job, thread);
    uint64_t at = chunk * CHUNK, end = job->elements - at < CHUNK ? job->elements : at + CHUNK;

    for (; at < end; at += BLOCK) {
        uint64_t count = end - at < BLOCK ? end - at : BLOCK;
        evaluate(job, room, at, count);
        write_block(job, room, at, count);
    }
    if (job->stream)
        gm_stream_end();
}

/* ---- Reductions: outer x along x inner. ---- */

static union gm_number combine(const struct job *job, union gm_number a, union gm_number b)
{
    const struct gm_program *p = job->program;
    union gm_number pair[2] = {a, b};

    /* The sums of f32 are f64. */
    enum gm_compute_type type = p->compute_type == GM_COMPUTE_I64 ? GM_COMPUTE_I64 : GM_COMPUTE_F64;
    return gm_reduce_get(type, p->reduction, GM_ISA_BASE)(pair, 2);
}

/* Writes result `index`. */
static void finish(const struct job *job, uint64_t index, union gm_number sum)
{
    const struct gm_program *p = job->program;
    char *to = (char *)p->result + index * gm_dtype_size(p->dtype);

    if (p->compute_type != GM_COMPUTE_I64 &&
        (p->reduction == GM_REDUCE_SUM || p->reduction == GM_REDUCE_MEAN))
        sum.real += 0.0; /* NumPy's sums begin with 0: none is -0.0 */
    if (p->reduction == GM_REDUCE_MEAN)
        sum.real /= (double)p->along;
    if (p->compute_type == GM_COMPUTE_F32) {
        float real = (float)sum.real;
        gm_store_get(GM_COMPUTE_F32, p->dtype, GM_ISA_BASE)(to, &real, 1, 1);
    } else {
        gm_store_get(p->compute_type, p->dtype, GM_ISA_BASE)(to, &sum, 1, 1);
    }
}

/* Writes the reduction of a part, or the result if there is one part. */
static void put(const struct job *job, uint64_t outer, uint64_t part, uint64_t inner,
                union gm_number sum)
{
    const struct gm_program *p = job->program;
    union gm_number *partial = p->scratch;

    if (job->parts.parts == 1)
        finish(job, outer * p->inner + inner, sum);
    else
        partial[(outer * job->parts.parts + part) * p->inner + inner] = sum;
}

/* inner is 1: `count` numbers from `at` on. */
static union gm_number reduce_span(const struct job *job, struct room *room, uint64_t at,
                                   uint64_t count)
{
    union gm_number sum = {0};

    for (uint64_t done = 0; done < count; done += BLOCK) {
        uint64_t n = count - done < BLOCK ? count - done : BLOCK;
        if (done % CHUNK == 0 && gm_exec_stopped(job->exec))
            return sum;
        evaluate(job, room, at + done, n);
        union gm_number more = job->reduce(room->x, n);
        sum = done == 0 ? more : combine(job, sum, more);
    }
    return sum;
}

/* A band of columns, through the rows of a part. sums: what begins a reduction. */
static void reduce_band(const struct job *job, struct room *room, uint64_t outer, uint64_t part,
                        uint64_t band)
{
    const struct gm_program *p = job->program;
    uint64_t first = part * job->parts.each, col = band * job->band;
    uint64_t rows = p->along - first < job->parts.each ? p->along - first : job->parts.each;
    uint64_t width = p->inner - col < job->band ? p->inner - col : job->band;
    /* Whole rows that fit in a block are evaluated together. */
    uint64_t together = width == p->inner ? BLOCK / width : 1;
    uint64_t at = (outer * p->along + first) * p->inner + col;

    for (uint64_t row = 0; row < rows; row += together) {
        uint64_t n = rows - row < together ? rows - row : together;
        if (row / together % (CHUNK / BLOCK) == 0 && gm_exec_stopped(job->exec))
            return;
        evaluate(job, room, at + row * p->inner, n * width);
        for (uint64_t k = 0; k < n; k++) {
            const char *x = (const char *)room->x + k * width * job->number;
            if (row + k > 0) {
                job->gather(room->sums, x, width);
                continue;
            }
            for (uint64_t j = 0; j < width; j++)
                room->sums[j] = job->reduce(x + j * job->number, 1);
        }
    }
    for (uint64_t j = 0; j < width; j++)
        put(job, outer, part, col + j, room->sums[j]);
}

/* A piece is a band of a part of an outer index. */
static void reduce_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    const struct gm_program *p = job->program;
    struct room *room = open_room(job, thread);
    uint64_t pieces = p->outer * job->parts.parts * job->bands;
    uint64_t piece = chunk * job->per_chunk;
    uint64_t end = pieces - piece < job->per_chunk ? pieces : piece + job->per_chunk;

    for (; piece < end && !gm_exec_stopped(job->exec); piece++) {
        uint64_t band = piece % job->bands, part = piece / job->bands % job->parts.parts;
        uint64_t outer = piece / job->bands / job->parts.parts;
        if (p->inner > 1) {
            reduce_band(job, room, outer, part, band);
            continue;
        }
        uint64_t first = part * job->parts.each;
        uint64_t count = p->along - first < job->parts.each ? p->along - first : job->parts.each;
        put(job, outer, part, 0, reduce_span(job, room, outer * p->along + first, count));
    }
}

/* The second pass of reductions of several parts. */
static void combine_chunk(void *cls, uint64_t chunk, unsigned thread)
{
    const struct job *job = cls;
    const struct gm_program *p = job->program;
    const union gm_number *partial = p->scratch;
    uint64_t all = p->outer * p->inner, at = chunk * job->per_chunk;
    uint64_t end = all - at < job->per_chunk ? all : at + job->per_chunk;

    (void)thread;
    for (; at < end; at++) {
        const union gm_number *first =
            partial + at / p->inner * job->parts.parts * p->inner + at % p->inner;
        union gm_number sum = *first;
        for (uint64_t k = 1; k < job->parts.parts; k++)
            sum = combine(job, sum, first[k * p->inner]);
        finish(job, at, sum);
    }
}

static enum gm_status reduce(struct job *job)
{
    const struct gm_program *p = job->program;
    uint64_t chunks;

    job->parts = gm_program_parts(p);
    job->band = p->inner < BLOCK ? p->inner : BLOCK;
    job->bands = gm_ceil_div(p->inner, job->band);
    uint64_t piece = job->parts.each * job->band;
    job->per_chunk = piece < CHUNK ? CHUNK / piece : 1;
    chunks = gm_ceil_div(p->outer * job->parts.parts * job->bands, job->per_chunk);
    if (!gm_pool_run(job->exec->pool, chunks, job->exec->stop, reduce_chunk, job))
        return GM_CANCELLED;
    if (job->parts.parts == 1)
        return gm_exec_stopped(job->exec) ? GM_CANCELLED : GM_OK;
    job->per_chunk = job->parts.parts < CHUNK ? CHUNK / job->parts.parts : 1;
    chunks = gm_ceil_div(p->outer * p->inner, job->per_chunk);
    return gm_pool_run(job->exec->pool, chunks, job->exec->stop, combine_chunk, job) ? GM_OK
                                                                                     : GM_CANCELLED;
}

/* ---- What is known before. ---- */

static void set_inputs(struct job *job)
{
    const struct gm_program *p = job->program;
    static const enum gm_dtype stored[GM_COMPUTE_COUNT] = {GM_F32, GM_F64, GM_I64};

    for (unsigned i = 0; i < p->inputs; i++) {
        const struct gm_program_input *x = &p->input[i];
        bool row = p->cols == 1 || x->col == 1;
        bool rows = p->rows == 1 || x->row == (int64_t)p->cols;
        bool batch = p->batch == 1 || x->batch == (int64_t)(p->rows * p->cols);
        job->input[i] =
            (struct input){.data = x->data,
                           .stride = {x->batch, x->row, x->col},
                           .size = gm_dtype_size(x->dtype),
                           .in_place = x->dtype == stored[p->compute_type],
                           .dense = row && rows && batch,
                           .load = gm_load_get(p->compute_type, x->dtype, job->exec->isa)};
    }
    job->in_place = p->dtype == stored[p->compute_type];
}

enum gm_status gm_cpu_elementwise(const struct gm_program *p, struct gm_exec *exec)
{
    struct job job = {
        .program = p, .exec = exec, .number = p->compute_type == GM_COMPUTE_F32 ? 4 : 8};

    job.rows = p->rows;
    job.cols = p->cols;
    job.elements = gm_program_elements(p);
    set_inputs(&job);
    job.store = gm_store_get(p->compute_type, p->dtype, exec->isa);
    for (unsigned k = 0; k < p->code; k++) {
        job.instruct[k] = gm_instruct_get(p->compute_type, p->instruction[k].kind, exec->isa);
        job.narrow[k] = gm_narrow_get(p->instruction[k].narrow, exec->isa);
    }
    if (p->reduction != GM_REDUCE_NONE) {
        job.reduce = gm_reduce_get(p->compute_type, p->reduction, exec->isa);
        job.gather = gm_gather_get(p->compute_type, p->reduction, exec->isa);
        return reduce(&job);
    }
    job.stream = job.elements * gm_dtype_size(p->dtype) >= GM_STREAM_MIN;
    return gm_pool_run(exec->pool, gm_ceil_div(job.elements, CHUNK), exec->stop, elementwise_chunk,
                       &job)
               ? GM_OK
               : GM_CANCELLED;
}
