/* table.h - a table for people: columns as wide as their longest text, the first line in bold. */
#ifndef GM_CLIENTS_C_GEMMCTL_TABLE_H
#define GM_CLIENTS_C_GEMMCTL_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define GM_TABLE_COLUMNS_MAX 10
#define GM_TABLE_ROWS_MAX 512 /* rows beyond are left out */

struct gm_table {
    unsigned columns;
    bool right[GM_TABLE_COLUMNS_MAX]; /* numbers: aligned on the right */
    unsigned rows;
    char *cell[GM_TABLE_ROWS_MAX][GM_TABLE_COLUMNS_MAX];
};

/* A row of `columns` cells; the texts are copied, and cleaned of control characters. */
void gm_table_add(struct gm_table *table, const char *const *cells);
/* Prints the table, and frees its cells. */
void gm_table_print(struct gm_table *table, FILE *out);

#endif
