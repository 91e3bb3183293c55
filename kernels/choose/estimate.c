/*
 * estimate.c - makes a time of a variant's work, and lists the variants with an estimate.
 *
 * A kernel ends when its busiest multiprocessor ends. What the first round of blocks waits for,
 * from its beginning to its end, nothing hides. That multiprocessor's arithmetic, shared memory, L2
 * traffic and the further waits overlap in part, as does memory: the root of the sum of their
 * squares is between the longest and the sum. Launches are added.
 */
#include "kernels/choose/estimate.h"

#include <string.h>

/* A variant without a row is never chosen. of_f64 and others: where the rows of these types are,
 * behind that of f32. */
static const struct row {
    enum gm_op_kind op;
    const char *name;
    gm_estimate_fn *us;
    enum gm_rates_row rates;
    unsigned of_f64, of_half, of_i64;
} rows[] = {
#define ROW(op_, name_, us_, rates_)                                                               \
    .op = GM_OP_##op_, .name = name_, .us = us_, .rates = GM_RATES_##rates_
    {ROW(COPY, "direct", gm_us_copy_direct, copy_direct)},
    {ROW(COPY, "vector", gm_us_copy_vector, copy_vector)},
    {ROW(TRANSPOSE, "naive", gm_us_transpose_naive, transpose_naive)},
    {ROW(TRANSPOSE, "tiled", gm_us_transpose_unpadded, transpose_tiled)},
    {ROW(TRANSPOSE, "padded", gm_us_transpose_tile, transpose_padded)},
    {ROW(TRANSPOSE, "vectorized", gm_us_transpose_vectorized, transpose_vectorized)},
    {ROW(TRANSPOSE, "unaligned", gm_us_transpose_unaligned, transpose_unaligned)},
    {ROW(TRANSPOSE, "packed_u8", gm_us_transpose_packed_u8, transpose_packed_u8)},
    {ROW(TRANSPOSE, "skinny", gm_us_transpose_skinny, transpose_tall)},
    {ROW(TRANSPOSE, "batched", gm_us_transpose_batched, transpose_batched)},
    {ROW(TRANSPOSE, "cublas", gm_us_transpose_tile, transpose_cublas)},
    {ROW(ADD, "direct", gm_us_add_direct, add_direct)},
    {ROW(ADD, "grid_stride", gm_us_add_grid_stride, add_grid_stride)},
    {ROW(ADD, "vectorized", gm_us_add_vectorized, add_vectorized)},
    {ROW(FLIP, "shared", gm_us_flip_shared, flip_shared)},
    {ROW(FLIP, "vectorized", gm_us_flip_vectorized, flip_vectorized)},
    {ROW(MATMUL, "naive", gm_us_naive, naive), .of_half = 1},
    {ROW(MATMUL, "grid_stride", gm_us_naive, grid_stride)},
    {ROW(MATMUL, "tiled", gm_us_tiled, tiled)},
    {ROW(MATMUL, "dynamic_tile", gm_us_dynamic_tile, dynamic_tile)},
    {ROW(MATMUL, "register_tiled", gm_us_register_tiled, register_tiled)},
    {ROW(MATMUL, "small_tile", gm_us_small_tile, small_tile), .of_half = 2},
    {ROW(MATMUL, "batched", gm_us_batched, batched)},
    {ROW(MATMUL, "skinny", gm_us_skinny, skinny_along), .of_half = 2},
    {ROW(MATMUL, "split_k_dot", gm_us_split_k_dot, split_k_dot)},
    {ROW(MATMUL, "multistage", gm_us_multistage, multistage), .of_f64 = 1, .of_i64 = 2},
    {ROW(MATMUL, "multistage_tuned", gm_us_multistage_tuned, multistage_tuned), .of_f64 = 1},
    {ROW(MATMUL, "mma", gm_us_mma, mma)},
    {ROW(MATMUL, "wgmma", gm_us_wgmma, wgmma)},
    {ROW(MATMUL, "split_bf16", gm_us_split_bf16, split_bf16)},
    {ROW(MATMUL, "cublas", gm_us_cublas, cublas_128), .of_f64 = 4, .of_half = 7},
    /* Of CPUs. */
    {ROW(COPY, "memcpy", gm_us_host_memcpy, host_memcpy)},
    {ROW(COPY, "stream", gm_us_host_stream, host_stream)},
    {ROW(TRANSPOSE, "naive", gm_us_host_transpose_naive, host_transpose_naive)},
    {ROW(TRANSPOSE, "blocked", gm_us_host_transpose_blocked, host_transpose_blocked)},
    {ROW(ADD, "direct", gm_us_host_by_element, host_add_direct)},
    {ROW(ADD, "vector", gm_us_host_add_vector, host_add_vector)},
    {ROW(FLIP, "naive", gm_us_host_by_element, host_flip_naive)},
    {ROW(FLIP, "vector", gm_us_host_flip_vector, host_flip_vector)},
    {ROW(MATMUL, "naive", gm_us_host_naive, host_naive), .of_half = 1},
    {ROW(MATMUL, "skinny", gm_us_host_skinny, host_skinny_along), .of_half = 2},
    {ROW(MATMUL, "blocked", gm_us_host_blocked, host_blocked), .of_half = 1},
    {ROW(MATMUL, "openblas", gm_us_host_openblas, host_openblas)},
};

/* Bytes in a cycle of a multiprocessor. Not all models can load as much from the L2 cache; a
 * profile's shares say what of it they do. */
#define L2_BYTES_PER_CLOCK 64.0
#define SHARED_BYTES_PER_CLOCK 128.0
/* Operands of which the L2 cache holds so many are taken to be there: results that come in turn. */
#define HELD_SETS 64.0
#define TENSOR_LEAST 2.0 /* times the rate of fp32, where that of tensor cores is not known */

static double time_of(double amount, double rate, double share)
{
    return amount > 0 && share > 0 ? amount / (rate * share) : 0;
}

/* A fit may find shares above 1, of operands that are partly in a cache. On a GPU of another
 * balance they would promise more than its data sheet. */
static double share_of(const struct gm_asked *q, double share)
{
    return q->borrowed ? gm_least_of(share, 1) : share;
}

double gm_work_us(const struct gm_asked *q, const struct gm_rates *r, const struct gm_work *w)
{
    const struct gm_profile *p = q->profile;

    if (!(r->math > 0)) { /* the profile has no such row */
        if (q->lacks)
            *q->lacks = true;
        return INFINITY;
    }
    double busiest = gm_parts(w->blocks, q->sms), round = r->start + w->steps * r->step;
    double further = gm_parts(busiest, w->resident) - 1;
    double missed = q->cold * p->first_miss + (q->cleared ? p->cleared : 0);
    struct gm_kernel_time e = {
        .launch = p->launch_us + (round + missed) / q->mhz,
        .math = time_of(busiest * w->madds, q->madds, share_of(q, r->math)),
        .shared = time_of(busiest * w->shared, q->shared, share_of(q, r->shared)),
        .l2 = time_of(busiest * w->l2, q->l2, r->l2),
        .dram = time_of(w->dram, q->dram, share_of(q, r->dram)),
        .wait = (further * round + w->steps * q->cold * p->miss + w->queued * p->queued) / q->mhz,
        .passes = w->passes * r->pass / q->mhz + w->pass_bytes / (q->dram * p->pass_rate)};

    e.us = e.launch + e.passes +
           sqrt(e.math * e.math + e.shared * e.shared + e.l2 * e.l2 + e.dram * e.dram +
                e.wait * e.wait);
    if (q->least && !(q->least->us <= e.us))
        *q->least = e;
    return e.us;
}

/* Multiply-adds in a microsecond, by the unit that the kernel uses. products: those on tensor cores
 * that make one; 0 where it uses none. */
static double madds_of(const struct gm_op *op, const struct gm_gpu *gpu, unsigned products,
                       bool *tensor)
{
    enum gm_dtype dtype = op->result.dtype;
    double gflops = gm_gpu_gflops(gpu, dtype), faster = 0;

    if (dtype == GM_I64)
        gflops = gpu->int32_gflops / GM_I64_PRODUCTS;
    if (products > 1)
        faster = gpu->tensor_f16_gflops / products;
    else if (dtype == GM_F16 || dtype == GM_BF16 || op->precision == GM_PRECISION_BF16_PRODUCTS)
        faster = gpu->tensor_f16_gflops;
    else if (dtype == GM_F32 && op->precision == GM_PRECISION_TF32)
        faster = gpu->tensor_tf32_gflops;
    else if (dtype == GM_F64 && op->precision != GM_PRECISION_IEEE)
        faster = gpu->tensor_fp64_gflops;
    if (products == 1 && gm_dtype_size(dtype) == 2 && faster == 0 && gpu->capability >= 80)
        faster = TENSOR_LEAST * gpu->fp32_gflops;
    *tensor = products > 0 && faster > 0;
    return (*tensor ? faster : gflops) * 1e3 / 2;
}

static void set_sizes(const struct gm_op *op, struct gm_sizes *s)
{
    double joined = (double)gm_op_joined(op);

    s->size = (double)gm_dtype_size(op->result.dtype);
    s->width = gm_most_of(s->size, 4);
    s->m = gm_most_of(1, (double)gm_op_m(op) * joined);
    s->n = gm_most_of(1, (double)gm_op_n(op));
    s->k = gm_most_of(1, (double)gm_op_k(op));
    s->batch = gm_most_of(1, (double)op->result.batch / joined);
    s->a = gm_op_view(op, 0);
    s->b = gm_op_view(op, 1);
    if (joined > 1)
        s->a.batch = 0;
    s->a_along_k = s->a.col == 1;
    s->b_along_k = s->b.col != 1;
}

struct gm_sizes gm_sizes_of(const struct gm_op *op)
{
    struct gm_sizes s;

    set_sizes(op, &s);
    return s;
}

struct gm_asked gm_asked_of(const struct gm_op *op, const struct gm_gpu *asked, unsigned products,
                            const struct gm_profile *profile)
{
    const struct gm_gpu *gpu = asked;
    struct gm_gpu like = *gm_gpu_at(0);
    struct gm_asked q = {.op = op, .profile = profile};

    if (!(asked->fp32_gflops > 0 && asked->dram_gbs > 0 && asked->sms > 0))
        gpu = &like; /* of a capability that nobody knows */
    q.borrowed =
        profile == gm_profile_at(0) && strcmp(gm_gpu_model(profile->gpu)->name, gpu->name) != 0;
    q.sms = gpu->sms;
    q.mhz = gm_gpu_ghz(gpu) * 1e3;
    q.madds = madds_of(op, gpu, products, &q.tensor) / q.sms;
    q.shared = SHARED_BYTES_PER_CLOCK * q.mhz;
    q.l2 = L2_BYTES_PER_CLOCK * q.mhz;
    q.dram = gpu->dram_gbs * 1e3;
    q.bytes = gm_most_of(1, (double)gm_op_bytes_min(op));
    if (op->kind == GM_OP_MATMUL)
        set_sizes(op, &q.s);
    return q;
}

/* Tensor-core products of a product, whether or not the variant is in this build. */
static unsigned products_of(const char *name)
{
    return strcmp(name, "split_bf16") == 0 ? 6
           : strcmp(name, "cublas") == 0 || strcmp(name, "mma") == 0 || strcmp(name, "wgmma") == 0
               ? 1
               : 0;
}

static unsigned of_type(const struct row *row, enum gm_dtype dtype)
{
    return dtype == GM_F64                       ? row->of_f64
           : dtype == GM_F16 || dtype == GM_BF16 ? row->of_half
           : dtype == GM_I64                     ? row->of_i64
                                                 : 0;
}

/* Either half of the L2 cache keeps copies of what the other has, as long as there is room. */
static double cold_part(double bytes, double cache)
{
    return cache > 0 ? gm_least_of(1, gm_most_of(0, 2 * bytes * HELD_SETS / cache - 1)) : 1;
}

static const struct row *row_of(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                                const struct gm_device_facts *facts)
{
    bool on_host = facts->kind == GM_DEVICE_CPU;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].op == kind && (kind == op->kind || kind == GM_OP_COPY) &&
            (rows[i].rates >= GM_RATES_HOST) == on_host && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

size_t gm_rates_of(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                   const struct gm_device_facts *facts)
{
    const struct row *row = row_of(op, kind, name, facts);

    return row ? row->rates + of_type(row, op->result.dtype) : GM_RATES_COUNT;
}

/* *ret_lacks: the profile lacks numbers that it takes. */
static struct gm_kernel_time estimate(const struct gm_op *op, enum gm_op_kind kind,
                                      const char *name, const struct gm_device_facts *facts,
                                      bool *ret_lacks)
{
    const struct gm_gpu *gpu = facts->gpu ? facts->gpu : gm_gpu_at(0);
    const struct gm_profile *profile = gm_profile_for(NULL, facts);
    const struct row *row = row_of(op, kind, name, facts);
    bool on_host = facts->kind == GM_DEVICE_CPU;
    struct gm_kernel_time least = {.us = INFINITY};

    *ret_lacks = false;
    if (row) {
        struct gm_asked q = on_host ? gm_asked_of_host(op, facts, profile)
                                    : gm_asked_of(op, gpu, products_of(name), profile);
        if (!on_host)
            q.cold = cold_part(q.bytes, (double)facts->cache_bytes);
        q.cleared = facts->cache_bytes == 0 && !on_host;
        q.least = &least;
        q.lacks = ret_lacks;
        row->us(&q, &q.profile->rates[row->rates + of_type(row, op->result.dtype)]);
    }
    if (!isfinite(least.us)) /* it is not for this one */
        least = (struct gm_kernel_time){.us = -1};
    return least;
}

struct gm_kernel_time gm_estimate(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                                  const struct gm_device_facts *facts)
{
    bool lacks;

    return estimate(op, kind, name, facts, &lacks);
}

bool gm_lacks_numbers(const struct gm_op *op, enum gm_op_kind kind, const char *name,
                      const struct gm_device_facts *facts)
{
    bool lacks;

    return estimate(op, kind, name, facts, &lacks).us < 0 && lacks;
}
