#include "clients/c/gemmctl/table.h"

#include "clients/c/gemmctl/say.h"

#include <stdlib.h>
#include <string.h>

void gm_table_add(struct gm_table *table, const char *const *cells)
{
    if (table->rows == GM_TABLE_ROWS_MAX)
        return;
    for (unsigned i = 0; i < table->columns; i++) {
        char *cell = strdup(cells[i]);
        for (char *p = cell; p && *p; p++)
            if ((unsigned char)*p < 0x20 || *p == 0x7f)
                *p = '?';
        table->cell[table->rows][i] = cell;
    }
    table->rows++;
}

/* Characters, of UTF-8: bytes that begin one. */
static int width_of(const char *text)
{
    int width = 0;

    for (; text && *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void gm_table_print(struct gm_table *table, FILE *out)
{
    int width[GM_TABLE_COLUMNS_MAX] = {0};

    for (unsigned row = 0; row < table->rows; row++)
        for (unsigned i = 0; i < table->columns; i++)
            if (width_of(table->cell[row][i]) > width[i])
                width[i] = width_of(table->cell[row][i]);
    for (unsigned row = 0; row < table->rows; row++) {
        fputs(row == 0 ? gm_say_style(out, GM_BOLD) : "", out);
        for (unsigned i = 0; i < table->columns; i++) {
            const char *text = table->cell[row][i] ? table->cell[row][i] : "";
            int blanks = width[i] - width_of(text);
            bool last = i + 1 == table->columns;
            fprintf(out, "%s%*s%s%*s", i ? "  " : "", table->right[i] ? blanks : 0, "", text,
                    table->right[i] || last ? 0 : blanks, "");
            free(table->cell[row][i]);
        }
        fputs(row == 0 ? gm_say_style(out, GM_PLAIN) : "", out);
        fputc('\n', out);
    }
    table->rows = 0;
}
