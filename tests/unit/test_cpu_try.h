/*
 * test_cpu_try.h - one operation by every variant of a backend's device, the cpu or the simulator,
 * against the oracle. A variant that refuses it must say so beforehand; one that accepts it must
 * be right, write all of the result and nothing else.
 */
#ifndef GM_TESTS_UNIT_CPU_TRY_H
#define GM_TESTS_UNIT_CPU_TRY_H

#include "test_cpu_case.h"

struct request {
    enum gm_op_kind kind;
    enum gm_dtype dtype;
    struct gm_shape
        shape[GM_OPERANDS_MAX]; /* as the operands are written: with trans, the other way */
    enum gm_layout layout[GM_OPERANDS_MAX];
    unsigned operands;
    struct gm_op_options options;
    const char *variant; /* the only one that is tried; NULL: all */
    uint64_t scratch;    /* bytes of the parts that it must want, which are aligned; 0: any */
};

static const enum gm_dtype arithmetic[] = {GM_F16, GM_BF16, GM_F32, GM_F64, GM_I32, GM_I64};
#define ARITHMETIC (sizeof(arithmetic) / sizeof(arithmetic[0]))

/* The state of the random numbers that operands are made of. */
extern uint64_t try_random;

/* Opens the backend once for each number of threads, up to a 0; they take turns, and now and then
 * one must give the same bits as another. */
#define TRY_BACKENDS_MAX 4
bool try_begin(const struct gm_backend *backend, const unsigned *threads);
/* After try_begin: of the variants of an operation tries only this one from now on. Fails, and says
 * which there are, if the device has none of that name. */
bool try_only(enum gm_op_kind op, const char *variant);
/* Closes it and makes the report, for main to return. Each variant of the device for one of `ops`
 * (1 << enum gm_op_kind) must have run: a right answer from a test that never ran is none. */
int try_end(unsigned ops);

/* An operation with random operands, whose elements may then be changed. */
bool try_make(const struct request *request, struct kernel_case *ret);
/* Runs it by all variants, and frees it. */
void try_case(struct kernel_case *made);
/* Both at once. */
void try_request(const struct request *request);

/* The shape of a stack; of a single matrix where batch is SINGLE. */
#define SINGLE UINT64_MAX
struct gm_shape shape_of(uint64_t batch, uint64_t rows, uint64_t cols);

#endif
