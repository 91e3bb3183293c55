/*
 * eval_world.c - the world of the fuzzer of plans, in place of kernels: one variant that takes all.
 */
#include "kernels/choose/choose.h"

static const struct gm_variant any = {.name = "any", .needs = "", .note = ""};

enum gm_status gm_choice_cache_open(struct gm_choice_cache **ret, struct gm_error *err)
{
    static int nothing;

    (void)err;
    *ret = (struct gm_choice_cache *)&nothing;
    return GM_OK;
}

enum gm_status gm_choose(struct gm_choice_cache *cache, struct gm_op *op,
                         const struct gm_device_facts *facts, const char *name,
                         const struct gm_variant **ret, struct gm_error *err)
{
    (void)cache;
    (void)op;
    (void)facts;
    (void)name;
    (void)err;
    *ret = &any;
    return GM_OK;
}

uint64_t gm_scratch_none(const struct gm_op *op)
{
    (void)op;
    return 0;
}
