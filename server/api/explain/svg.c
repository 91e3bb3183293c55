/*
 * svg.c - draws an access report as SVG: which lane of each site's example warp touches what.
 *
 * It draws sectors of global memory and banks of shared memory. It can be printed in black and
 * white: position, number, hatching and line width carry the meaning, not colour. No scripts, only
 * generic fonts. The lanes of a warp and the number of sites drawn bound its size.
 */
#include "server/api/explain/explain.h"

#include "server/limits.h"
#include "server/request/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT 200 /* x of the first column; labels are left of it */
#define CELL 22
#define ROW 14
#define GAP_ROW 13
#define WIDTH (LEFT + 32 * CELL + 16)
#define WRAP 118 /* characters in a line of text */

struct page {
    FILE *out;
    int y; /* y of the next element */
};

/* Escapes XML. A kernel's source may hold any bytes; all but printable ASCII are replaced. */
static void escape(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fputc(c < 0x20 ? ' ' : c < 0x7F ? c : '?', out);
    }
}

static void text_at(const struct page *p, int x, int y, const char *class, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void text_at(const struct page *p, int x, int y, const char *class, const char *format, ...)
{
    char text[GM_EXPLAIN_WORDS_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
    escape(p->out, text, sizeof text);
    fputs("</text>\n", p->out);
}

/* Writes a paragraph, wrapped at spaces. */
static void paragraph(struct page *p, const char *text)
{
    while (*text) {
        size_t len = strlen(text);
        if (len > WRAP) {
            for (len = WRAP; len > 0 && text[len] != ' '; len--)
                ;
            len = len > 0 ? len : WRAP;
        }
        p->y += 16;
        text_at(p, 8, p->y, "t", "%.*s", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void cell(const struct page *p, unsigned column, int height, const char *class)
{
    fprintf(p->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"%s\"/>\n",
            LEFT + (int)column * CELL, p->y, CELL, height, class);
}

static void in_cell(const struct page *p, unsigned column, const char *class, const char *text)
{
    text_at(p, LEFT + (int)column * CELL + CELL / 2, p->y + ROW - 4, class, "%s", text);
}

static void column_heads(struct page *p, const char *what)
{
    char number[16];

    text_at(p, LEFT - 8, p->y + ROW - 4, "r", "%s", what);
    for (unsigned i = 0; i < GM_WARP; i++) {
        snprintf(number, sizeof number, "%u", i);
        in_cell(p, i, "c", number);
    }
    p->y += ROW;
}

static void gap(struct page *p, int64_t bytes)
{
    text_at(p, LEFT + 4, p->y + GAP_ROW - 4, "g", "... %lld bytes between them ...",
            (long long)bytes);
    p->y += GAP_ROW;
}

/* Writes a row's label. Deep in a large matrix there is no room for the row's end. */
static void label(const struct page *p, int64_t begin, int64_t bytes)
{
    if (begin < 1000000000)
        text_at(p, LEFT - 8, p->y + ROW - 4, "r", "bytes %lld to %lld", (long long)begin,
                (long long)(begin + bytes - 1));
    else
        text_at(p, LEFT - 8, p->y + ROW - 4, "r", "from byte %lld", (long long)begin);
}

static void draw_global(struct page *p, const struct gm_access_example *x)
{
    struct gm_sectors map;

    gm_map_sectors(x, &map);
    column_heads(p, "lane");
    for (unsigned row = 0; row < map.rows; row++) {
        int64_t begin = map.row[row].index * (int64_t)GM_SECTOR;
        if (row > 0 && map.row[row].index > map.row[row - 1].index + 1)
            gap(p, begin - (map.row[row - 1].index + 1) * (int64_t)GM_SECTOR);
        label(p, begin, GM_SECTOR);
        for (unsigned lane = 0; lane < GM_WARP; lane++) {
            bool touches = map.row[row].lanes >> lane & 1;
            cell(p, lane, ROW, touches ? "h" : "e");
        }
        p->y += ROW;
    }
    text_at(p, LEFT - 8, p->y + ROW - 4, "r", "sum");
    text_at(p, LEFT + 4, p->y + ROW - 4, "t", "%u sector%s for this request", map.rows,
            map.rows == 1 ? "" : "s");
    p->y += ROW + 4;
}

static void draw_shared(struct page *p, const struct gm_access_example *x)
{
    struct gm_banks map;
    char text[16];

    gm_map_banks(x, &map);
    column_heads(p, "bank");
    for (unsigned row = 0; row < map.rows; row++) {
        int64_t begin = map.row[row].index * 128;
        if (row > 0 && map.row[row].index > map.row[row - 1].index + 1)
            gap(p, begin - (map.row[row - 1].index + 1) * 128);
        label(p, begin, 128);
        for (unsigned bank = 0; bank < GM_BANKS; bank++) {
            uint32_t lanes = map.row[row].lanes[bank];
            cell(p, bank, ROW, !lanes ? "e" : map.words[bank] > 1 ? "k" : "h");
            if (lanes)
                in_cell(p, bank, "n", gm_map_lanes_text(lanes, text));
        }
        p->y += ROW;
    }
    text_at(p, LEFT - 8, p->y + ROW - 4, "r", "words per bank");
    for (unsigned bank = 0; bank < GM_BANKS; bank++) {
        snprintf(text, sizeof text, "%u", map.words[bank]);
        in_cell(p, bank, "c", text);
    }
    p->y += ROW + 4;
}

static void draw_site(struct page *p, const struct gm_explain *e, const struct gm_access_site *s)
{
    bool shared = gm_access_is_shared(s->kind);
    const struct gm_access_example *x = &s->example;
    struct gm_site_figures f;

    gm_explain_site(e, s, &f);
    fprintf(p->out, "<g class=\"%s\">\n<title>", shared ? "shared" : "global");
    escape(p->out, s->source, sizeof s->source);
    fputs("</title>\n", p->out);
    p->y += 22;
    const char *unit = shared ? "wavefront" : "sector";
    text_at(p, 8, p->y, "b", "line %u: %s, %s: %.4g %s%s per request, ideal %.4g: %s", s->line,
            gm_access_name(s->kind), s->memory, f.units, unit, f.units == 1 ? "" : "s", f.ideal,
            f.verdict);
    p->y += 15;
    text_at(p, 8, p->y, "s", "%s", s->source);
    p->y += 13;
    text_at(p, 8, p->y, "g", "block (%u, %u, %u), warp %u; %u bytes per lane; in the cells: %s",
            x->block[0], x->block[1], x->block[2], x->warp, x->bytes,
            shared ? "the lanes that access this word; thick: a bank conflict"
                   : "hatched where the lane touches the sector");
    p->y += 4;
    if (shared)
        draw_shared(p, x);
    else
        draw_global(p, x);
    fputs("</g>\n", p->out);
}

static void draw_all(struct page *p, const struct gm_explain *e)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];
    size_t drawn =
        e->report->sites < GM_EXPLAIN_DRAWN_MAX ? e->report->sites : (size_t)GM_EXPLAIN_DRAWN_MAX;

    gm_explain_words(e, problem, cure);
    p->y = 22;
    text_at(p, 8, p->y, "b", "%s, kernel %s, %s", gm_op_name(e->op->kind), e->variant->name,
            gm_dtype_name(e->op->result.dtype));
    paragraph(p, problem);
    paragraph(p, cure);
    for (size_t i = 0; i < drawn; i++)
        draw_site(p, e, &e->report->site[i]);
    if (drawn < e->report->sites) {
        p->y += 20;
        text_at(p, 8, p->y, "t", "%zu more sites are not drawn; format=json has them all",
                e->report->sites - drawn);
    }
    p->y += 12;
}

static void write_page(FILE *out, const struct gm_explain *e, const char *body, int height)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];

    gm_explain_words(e, problem, cure);
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">",
            WIDTH, height, WIDTH, height);
    escape(out, gm_op_name(e->op->kind), 64);
    fputs(": memory accesses of kernel ", out);
    escape(out, e->variant->name, 64);
    fputs("</title>\n<desc id=\"desc\">", out);
    escape(out, problem, sizeof problem);
    fputc(' ', out);
    escape(out, cure, sizeof cure);
    fputs("</desc>\n"
          "<defs><pattern id=\"hatch\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"4\" "
          "stroke=\"#000\" stroke-width=\"1.6\"/></pattern></defs>\n"
          "<style>text{font:12px sans-serif;fill:#000}.b{font-weight:bold}"
          ".s{font:11px monospace}.c,.n{font:9px monospace;text-anchor:middle}"
          ".n{font-weight:bold}.r{font:10px monospace;text-anchor:end}.g{font:10px sans-serif}"
          ".e{fill:#fff;stroke:#bbb;stroke-width:.5}.h{fill:#fff;stroke:#000}"
          "g.global .h{fill:url(#hatch)}.k{fill:#fff;stroke:#000;stroke-width:2}</style>\n",
          out);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n%s</svg>\n", WIDTH, height,
            body);
}

char *gm_explain_svg(const struct gm_explain *e)
{
    struct gm_text_stream drawings, whole;
    char *text = NULL;

    if (!gm_text_stream_begin(&drawings))
        return NULL;
    struct page page = {.out = drawings.out};
    draw_all(&page, e);
    char *body = gm_text_stream_end(&drawings, NULL);
    if (body && gm_text_stream_begin(&whole)) {
        write_page(whole.out, e, body, page.y);
        text = gm_text_stream_end(&whole, NULL);
    }
    free(body);
    return text;
}
