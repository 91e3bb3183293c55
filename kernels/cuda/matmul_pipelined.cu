/*
 * matmul_pipelined.cu - the operands are on their way while others are used, and nothing else is in
 * the way of the multiplications.
 *
 * The difference to matmul_registers: what a thread loads there goes through its registers, which
 * it then lacks for sums, and it stands still at the barrier until the last element has come. Here
 * copies go from global to shared memory by themselves (cp.async), three slabs ahead, and registers
 * hold 8 x 16 sums: 6 reads of 16 bytes from shared memory for 128 multiplications. A block of 256
 * threads has a multiprocessor to itself and computes 128 x 256. How is said in pipeline.h.
 *
 * Cost, elements of 4 bytes: of 100 instructions in the loop 89 are multiply-adds, 4 read shared
 * memory, the rest copies and counts. Reads of shared memory take 2 wavefronts each, 12 for 128
 * multiplications of a warp; 1.2 elements for a hundred multiply-adds come from global memory.
 * Elements of 8 bytes have smaller tiles (cut_of), and two slabs ahead.
 *
 * When it wins: for i32 and i64 products whose tiles fill the multiprocessors; f32 and f64 have
 * matmul_fitted, which has this cut among others and is as good to a few hundredths.
 *
 * Source: the warp tiles of CUTLASS ("Efficient GEMM in CUDA", NVIDIA); N. Gray and S. Gray, maxas,
 * "SGEMM", on register banks and their reuse.
 */
#include "kernels/cuda/pipeline.h"

/* A cut; FIXED: with kernels of their own for ways that are common. */
template <typename C, bool FIXED_> struct taken {
    using cut = C;
    static constexpr bool FIXED = FIXED_;
};

/* i64 has too few registers for more sums: each of its multiplications takes several. */
template <typename T> struct cut_of;
template <>
struct cut_of<float>
    : taken<gm_cut<float, 8, 16, 8, 2, 4, 8, 4, 1, gm_order<3, 1, true>, 1, gm_order<5, 0>>, true> {
};
template <>
struct cut_of<int32_t> : taken<gm_cut<int32_t, 8, 16, 8, 2, 4, 8, 4, 1, gm_order<8, 1>>, false> {
};
template <>
struct cut_of<double> : taken<gm_cut<double, 8, 8, 8, 2, 4, 8, 3, 1, gm_order<6, 1>>, false> {
};
template <>
struct cut_of<int64_t> : taken<gm_cut<int64_t, 4, 8, 8, 2, 4, 8, 3, 1, gm_order<6, 1>>, false> {
};

/* fn(gm_tag<T>) with the element types that asynchronous copies can move. */
template <typename F> static enum gm_status by_wide_type(enum gm_dtype dtype, F fn)
{
    switch (dtype) {
    case GM_F64:
        return fn(gm_tag<double>());
    case GM_I32:
        return fn(gm_tag<int32_t>());
    case GM_I64:
        return fn(gm_tag<int64_t>());
    default:
        return fn(gm_tag<float>());
    }
}

extern "C" enum gm_status GM_ENTRY(matmul_pipelined)(const struct gm_op *op, struct gm_exec *exec)
{
    return by_wide_type(op->result.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        using taken = cut_of<T>;
        return gm_run_pipelined<typename taken::cut, taken::FIXED>(exec, gm_product_of<T>(op), 1,
                                                                   false);
    });
}
