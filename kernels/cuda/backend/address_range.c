/*
 * address_range.c - asks the driver how large an allocation is, which the runtime cannot tell. The
 * driver's library is there: the runtime has opened it.
 */
#include "device.h"

#include <dlfcn.h>
#include <string.h>

/* CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr address) */
typedef int address_range_fn(unsigned long long *base, size_t *size, unsigned long long address);

bool gm_cuda_allocation_bytes(const void *data, uint64_t *ret)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "cuMemGetAddressRange_v2") : NULL;
    address_range_fn *address_range;
    unsigned long long base = 0;
    size_t bytes = 0;
    bool found = false;

    if (symbol) {
        memcpy(&address_range, &symbol, sizeof(symbol));
        found = address_range(&base, &bytes, (unsigned long long)(uintptr_t)data) == 0 &&
                base == (unsigned long long)(uintptr_t)data;
    }
    if (library)
        dlclose(library);
    if (found)
        *ret = bytes;
    return found;
}
