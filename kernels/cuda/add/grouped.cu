/*
 * grouped.cu - adds matrices of many operations in one launch, where they are.
 *
 * Matrices of one shape are long rows, of which a thread adds one vector of 16 bytes.
 *
 * Cost: each element crosses the link to the host's memory once each way.
 * When it wins: small matrices, whose launch and copies would take longer (choose/grouped.c).
 */
#include "kernels/cuda/lib/group.h"
#include "kernels/cuda/lib/vec.h"

#define THREADS 256u

template <typename T> struct problem {
    const T *a, *b;
    T *result;
    unsigned count;
};

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    add_grouped(const __grid_constant__ gm_group<problem<T>> group)
{
    constexpr unsigned V = gm_per_vec<T, 16>::count;

    gm_group_each(group, [&](const problem<T> &p, unsigned tile) {
        unsigned at = (tile * THREADS + threadIdx.x) * V;
        gm_elements<T, 16> left, right;

        if (at + V <= p.count) {
            left.vec = *(const gm_vec<16> *)(p.a + at);
            right.vec = *(const gm_vec<16> *)(p.b + at);
#pragma unroll
            for (unsigned e = 0; e < V; e++)
                left.element[e] = gm_store<T>(gm_load(left.element[e]) + gm_load(right.element[e]));
            gm_store_vec(p.result + at, left.vec);
            return;
        }
        for (unsigned i = at; i < p.count; i++)
            p.result[i] = gm_store<T>(gm_load(p.a[i]) + gm_load(p.b[i]));
    });
}

GM_ROW_FUNCTION enum gm_status
gm_add_grouped_accepts(const struct gm_op *op, const struct gm_device_facts *, struct gm_error *err)
{
    uint64_t elements = gm_matrix_elements(&op->result);

    if (gm_matrix_elements(&op->operand[0]) != elements ||
        gm_matrix_elements(&op->operand[1]) != elements)
        return gm_fail(err, GM_KERNEL_UNAVAILABLE, "kernel \"grouped\" adds matrices of one shape");
    return gm_group_refuses(op, 0, err);
}

GM_KERNEL(add_grouped)
{
    return gm_by_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;

        return gm_group_launch(
            op, exec, add_grouped<T>, THREADS, 2 * 16 * THREADS, 0,
            [](const struct gm_op *each, problem<T> *ret) {
                unsigned count = (unsigned)gm_matrix_elements(&each->result);
                *ret = {gm_in<T>(each, 0), gm_in<T>(each, 1), gm_out<T>(each), count};
                return (unsigned)gm_ceil_div(count, THREADS * gm_per_vec<T, 16>::count);
            });
    });
}
