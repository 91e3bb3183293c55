#include "tests/unit/explain_case.h"

#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

void case_init(struct explain_case *c, enum gm_op_kind kind, uint64_t rows, uint64_t cols)
{
    const struct gm_op_options options = {0};
    const bool present[GM_OPERANDS_MAX] = {true, gm_op_operands_min(kind) > 1, false};
    const struct gm_matrix m = {.dtype = GM_F32, .batch = 1, .rows = rows, .cols = cols};
    const struct gm_matrix operand[GM_OPERANDS_MAX] = {m, m, {0}};
    struct gm_error error;

    memset(c, 0, sizeof *c);
    CHECK_STATUS(gm_op_init(&c->op, kind, &options, operand, present, &error), GM_OK, &error);
    c->variant = (struct gm_variant){.op = kind, .name = "mine", .note = "", .needs = ""};
    c->facts.kind = GM_DEVICE_SIM;
    c->launch[0] = (struct gm_launch_report){
        .kernel = "mine_kernel",
        .grid = {(uint32_t)((cols + 31) / 32), (uint32_t)((rows + 31) / 32), 1},
        .block = {32, 8, 1}};
    double blocks = (double)c->launch[0].grid[0] * c->launch[0].grid[1];
    c->launch[0].blocks = blocks;
    c->launch[0].traced = 9;
    c->report = (struct gm_access_report){
        .launches = 1, .launch = c->launch, .site = c->site, .sampled = true};
    c->report.totals.blocks = blocks;
    c->report.totals.warps = c->report.totals.loading = 8 * blocks;
    c->report.totals.steps = 100 * blocks;
    c->report.totals.lanes = 32 * 100 * blocks;
    c->explain = (struct gm_explain){.id = "id-1",
                                     .device = "sim:0",
                                     .op = &c->op,
                                     .variant = &c->variant,
                                     .facts = c->facts,
                                     .gpu = gm_gpu_at(0),
                                     .report = &c->report};
}

/* Distinct values of offset / unit over all bytes of all lanes. */
static unsigned distinct(const struct gm_access_example *x, int64_t unit)
{
    int64_t seen[GM_WARP * 16];
    unsigned n = 0;

    for (unsigned lane = 0; lane < GM_WARP; lane++) {
        for (unsigned byte = 0; (x->active >> lane & 1) && byte < x->bytes; byte++) {
            int64_t value = (x->offset[lane] + byte) / unit;
            unsigned i = 0;
            while (i < n && seen[i] != value)
                i++;
            if (i == n)
                seen[n++] = value;
        }
    }
    return n;
}

/* The most different words that one bank is asked for: right for lanes of 4 bytes or fewer. */
static unsigned wavefronts(const struct gm_access_example *x)
{
    unsigned most = 0;

    for (int64_t bank = 0; bank < (int64_t)GM_BANKS; bank++) {
        struct gm_access_example one = *x;
        for (unsigned lane = 0; lane < GM_WARP; lane++)
            if (x->offset[lane] / 4 % (int64_t)GM_BANKS != bank)
                one.active &= ~(UINT32_C(1) << lane);
        unsigned words = distinct(&one, 4);
        most = words > most ? words : most;
    }
    return most;
}

struct gm_access_site *case_add(struct explain_case *c, enum gm_access_kind kind, unsigned line,
                                const char *memory, double requests, struct lanes l)
{
    struct gm_access_site *s = &c->site[c->report.sites++];
    struct gm_access_example *x = &s->example;
    unsigned width = l.width ? l.width : GM_WARP;
    bool shared = gm_access_is_shared(kind);

    s->kind = kind;
    s->line = line;
    snprintf(s->kernel, sizeof s->kernel, "mine_kernel");
    snprintf(s->file, sizeof s->file, "kernels/cuda/mine.cu");
    snprintf(s->source, sizeof s->source, "%s[i] = x < y ? a & b : \"%u\";", memory, line);
    snprintf(s->memory, sizeof s->memory, "%s", memory);
    x->bytes = l.bytes ? l.bytes : 4;
    x->active = l.active ? l.active : UINT32_MAX;
    for (unsigned i = 0; i < GM_WARP; i++)
        x->offset[i] = l.begin + i / width * l.pitch + i % width * l.stride;
    double useful = distinct(x, 1), units = shared ? wavefronts(x) : distinct(x, GM_SECTOR);
    double unit_bytes = shared ? 128 : GM_SECTOR;
    s->sums = (struct gm_access_sums){
        .requests = requests,
        .lanes = requests * __builtin_popcount(x->active),
        .bytes_useful = requests * useful,
        .bytes_moved = requests * units * unit_bytes,
        .units = requests * units,
        .units_ideal = requests * (double)(uint64_t)((useful + unit_bytes - 1) / unit_bytes),
        .passes = requests * wavefronts(x),
        .lines = shared ? 0 : requests * distinct(x, GM_LINE),
        .first = kind == GM_GLOBAL_LOAD ? requests * units : 0};
    struct gm_access_sums *t = &c->report.totals.kind[kind];
    t->requests += s->sums.requests;
    t->lanes += s->sums.lanes;
    t->bytes_useful += s->sums.bytes_useful;
    t->bytes_moved += s->sums.bytes_moved;
    t->units += s->sums.units;
    t->units_ideal += s->sums.units_ideal;
    t->passes += s->sums.passes;
    t->lines += s->sums.lines;
    t->first += s->sums.first;
    return s;
}

void case_transpose(struct explain_case *c, unsigned pitch)
{
    const double requests = 1024 * 1024 / 32;

    case_init(c, GM_OP_TRANSPOSE, 1024, 1024);
    case_add(c, GM_GLOBAL_LOAD, 23, "a", requests, (struct lanes){.stride = 4});
    if (pitch > 0) {
        c->launch[0].shared = 32 * 4 * pitch;
        c->report.totals.barriers = c->report.totals.blocks;
        case_add(c, GM_SHARED_STORE, 23, "tile", requests, (struct lanes){.stride = 4});
        case_add(c, GM_SHARED_LOAD, 29, "tile", requests, (struct lanes){.stride = 4 * pitch});
        case_add(c, GM_GLOBAL_STORE, 29, "result", requests, (struct lanes){.stride = 4});
    } else {
        case_add(c, GM_GLOBAL_STORE, 23, "result", requests, (struct lanes){.stride = 4096});
    }
}
