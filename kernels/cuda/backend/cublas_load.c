/*
 * cublas_load.c - loads cuBLAS at run time.
 */
#include "cublas.h"

#include <dlfcn.h>
#include <string.h>

static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};

bool gm_cublas_load(struct gm_cublas *ret)
{
    struct gm_cublas blas;
    void *library = NULL;
    bool whole = true;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;

    const struct {
        const char *name;
        void *at; /* a pointer to a function */
    } wanted[] = {
        {"cublasCreate_v2", &blas.create},
        {"cublasDestroy_v2", &blas.destroy},
        {"cublasSetStream_v2", &blas.set_stream},
        {"cublasSetMathMode", &blas.set_math_mode},
        {"cublasGetVersion_v2", &blas.get_version},
        {"cublasGemmStridedBatchedEx", &blas.gemm},
        {"cublasSgeam", &blas.sgeam},
        {"cublasDgeam", &blas.dgeam},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);
        whole = whole && function;
        memcpy(wanted[i].at, &function, sizeof(function));
    }
    if (whole)
        *ret = blas;
    return whole;
}
