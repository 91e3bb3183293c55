/*
 * access.c - names kinds of accesses, adds up their costs, and frees reports.
 */
#include "access.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[GM_ACCESS_KINDS] = {
#define X(name, text) text,
    GM_ACCESS_LIST(X)
#undef X
};

const char *gm_access_name(enum gm_access_kind kind)
{
    return names[kind];
}

void gm_access_add(struct gm_access_sums *into, const struct gm_access_sums *from)
{
    into->requests += from->requests;
    into->lanes += from->lanes;
    into->bytes_useful += from->bytes_useful;
    into->bytes_moved += from->bytes_moved;
    into->units += from->units;
    into->units_ideal += from->units_ideal;
    into->passes += from->passes;
    into->lines += from->lines;
    into->first += from->first;
    into->beside += from->beside;
    into->again += from->again;
}

void gm_access_report_clear(struct gm_access_report *report)
{
    free(report->launch);
    free(report->site);
    memset(report, 0, sizeof(*report));
}

/* Each matrix begins at a sector. */
static double sectors(const struct gm_matrix *matrix)
{
    return ceil((double)gm_matrix_bytes(matrix) / GM_SECTOR);
}

double gm_access_sectors_min(const struct gm_op *op)
{
    double total = sectors(&op->result);

    for (unsigned i = 0; i < op->operands; i++)
        if (gm_op_reads(op, i))
            total += sectors(&op->operand[i]);
    return total;
}
