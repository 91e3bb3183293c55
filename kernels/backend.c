/*
 * backend.c - lists the backends of this build.
 */
#include "backend.h"

#include "kernels/cpu/backend/facts.h"

static const struct gm_backend *const backends[] = {
#if GM_HAVE_CUDA
    &gm_backend_cuda,
#endif
    &gm_backend_cpu,
    &gm_backend_sim,
};

const struct gm_backend *gm_backend_at(size_t index)
{
    return index < sizeof(backends) / sizeof(backends[0]) ? backends[index] : NULL;
}

uint64_t gm_group_key(const struct gm_task *task)
{
    if (!task->variant->groups || task->repeat > 1 || task->report)
        return 0;
    return (uint64_t)(uintptr_t)task->variant * GM_DTYPE_COUNT + task->op.result.dtype;
}

uint64_t gm_host_memory(void)
{
    return gm_cpu_memory();
}
