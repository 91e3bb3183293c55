/*
 * svg.c - draws an access report as SVG: what one warp of each place in the source touches.
 *
 * Global memory is one line of sectors: bytes that lanes asked for are coloured, the rest of these
 * sectors is grey; the lanes are above. Shared memory is 32 banks side by side; the words that a
 * bank has to deliver are stacked, a wavefront each. A second kernel, or the one that cures
 * the first, is beside it. Colours can be told apart by the colour-blind, and hatching in black and
 * white. It follows the reader's dark mode. No scripts, only generic fonts. It is one screen high.
 */
#include "server/api/explain/explain.h"

#include "server/limits.h"
#include "server/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN 740 /* of one kernel */
#define LEFT 164   /* x of drawings; the large figures are left of them */
#define BODY 560   /* width of drawings */
#define MARGIN 10
#define HEIGHT_MAX 860
#define PANEL_TOP_MAX 710 /* panels that would begin below are left out */
#define WRAP 112          /* characters in a line of text */
#define SMALL 5.6         /* width of a character of 9 pixels */
#define SECTOR_HEIGHT 22
#define WORD_HEIGHT 14
#define WORDS_DRAWN 6 /* of a bank; the rest is a number */

struct page {
    FILE *out;
    int x, y; /* of the column, and of the next element */
};

static void text_at(const struct page *p, double x, int y, const char *class, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));

static void text_at(const struct page *p, double x, int y, const char *class, const char *format,
                    ...)
{
    char text[GM_EXPLAIN_WORDS_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->out, "<text x=\"%.4g\" y=\"%d\" class=\"%s\">", p->x + x, y, class);
    gm_svg_escape(p->out, text);
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
        text_at(p, MARGIN, p->y, "t", "%.*s", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void box(const struct page *p, double x, int y, double width, int height, const char *class)
{
    fprintf(p->out, "<rect x=\"%.5g\" y=\"%d\" width=\"%.4g\" height=\"%d\" class=\"%s\"/>\n",
            p->x + x, y, width, height, class);
}

/* ---- Global memory ------------------------------------------------------------------------- */

/* The bytes of a sector that lanes asked for. */
static uint32_t used_bytes(const struct gm_access_example *x, int64_t sector)
{
    int64_t begin = sector * (int64_t)GM_SECTOR;
    uint32_t used = 0;

    for (unsigned lane = 0; lane < GM_WARP; lane++)
        for (unsigned i = 0; (x->active >> lane & 1) && i < x->bytes; i++) {
            int64_t at = x->offset[lane] + i - begin;
            if (at >= 0 && at < (int64_t)GM_SECTOR)
                used |= UINT32_C(1) << at;
        }
    return used;
}

static void draw_sector(const struct page *p, double x, double width, uint32_t used)
{
    double byte = width / GM_SECTOR;

    box(p, x, p->y, width, SECTOR_HEIGHT, "e");
    for (unsigned i = 0; i < GM_SECTOR; i++) {
        unsigned run = 0;
        while (i + run < GM_SECTOR && used >> (i + run) & 1)
            run++;
        if (run > 0)
            box(p, x + i * byte, p->y, run * byte, SECTOR_HEIGHT, "u");
        i += run;
    }
}

/* Writes a text over or under a sector, if it does not touch the one before, which ended at *end.
 */
static void label(const struct page *p, double center, int y, const char *text, double *end)
{
    double half = (double)strlen(text) * SMALL / 2;

    if (center - half < *end + SMALL || center + half > LEFT + BODY + 12)
        return;
    text_at(p, center, y, "c", "%s", text);
    *end = center + half;
}

static void draw_global(struct page *p, const struct gm_access_example *x)
{
    struct gm_sectors map;
    unsigned gaps = 0;
    char text[24];

    gm_map_sectors(x, &map);
    for (unsigned i = 1; i < map.rows; i++)
        gaps += map.row[i].index > map.row[i - 1].index + 1;
    double gap = gaps > 16 ? 3 : 10, width = map.rows ? (BODY - gaps * gap) / map.rows : BODY;
    width = width > 44 ? 44 : width;
    double at = LEFT, lanes_end = 0, bytes_end = 0;
    text_at(p, LEFT - 8, p->y + 8, "r", "lanes");
    text_at(p, LEFT - 8, p->y + 14 + SECTOR_HEIGHT + 10, "r", "bytes from");
    p->y += 14;
    for (unsigned i = 0; i < map.rows; i++) {
        bool apart = i > 0 && map.row[i].index > map.row[i - 1].index + 1;
        at += apart ? gap : 0;
        label(p, at + width / 2, p->y - 5, gm_map_lanes_text(map.row[i].lanes, text), &lanes_end);
        draw_sector(p, at, width, used_bytes(x, map.row[i].index));
        if (i == 0 || apart) {
            snprintf(text, sizeof text, "%lld", (long long)(map.row[i].index * (int64_t)GM_SECTOR));
            label(p, at + width / 2, p->y + SECTOR_HEIGHT + 11, text, &bytes_end);
        }
        at += width;
    }
    p->y += SECTOR_HEIGHT + 16;
}

/* ---- Shared memory ------------------------------------------------------------------------- */

/* The lanes of a word, in the room of a bank: "7", or "0+" for lane 0 and others. */
static void lanes_of_word(uint32_t lanes, char out[8])
{
    snprintf(out, 8, "%d%s", lanes ? __builtin_ctz(lanes) : 0, lanes & (lanes - 1) ? "+" : "");
}

/* Draws the words of a bank, one on the other, and returns how many it has. */
static unsigned draw_bank(const struct page *p, const struct gm_banks *map, unsigned bank,
                          bool conflicts)
{
    const double width = BODY / (double)GM_BANKS;
    double x = LEFT + bank * width;
    unsigned words = 0;
    char text[8];

    for (unsigned row = 0; row < map->rows; row++) {
        uint32_t lanes = map->row[row].lanes[bank];
        if (!lanes || words++ >= WORDS_DRAWN)
            continue;
        int y = p->y + (int)(words - 1) * WORD_HEIGHT;
        box(p, x, y, width, WORD_HEIGHT, conflicts && words > 1 ? "k" : "u");
        lanes_of_word(lanes, text);
        text_at(p, x + width / 2, y + WORD_HEIGHT - 4, "n", "%s", text);
    }
    if (words == 0)
        box(p, x, p->y, width, WORD_HEIGHT, "e");
    return words;
}

static void draw_shared(struct page *p, const struct gm_access_example *x, bool conflicts)
{
    const double width = BODY / (double)GM_BANKS;
    struct gm_banks map;
    unsigned most = 1;

    gm_map_banks(x, &map);
    text_at(p, LEFT - 8, p->y + 8, "r", "bank");
    for (unsigned bank = 0; bank < GM_BANKS; bank++)
        text_at(p, LEFT + (bank + 0.5) * width, p->y + 8, "c", "%u", bank);
    p->y += 13;
    text_at(p, LEFT - 8, p->y + 10, "r", "lanes");
    for (unsigned bank = 0; bank < GM_BANKS; bank++) {
        unsigned words = draw_bank(p, &map, bank, conflicts);
        most = words > most ? words : most;
    }
    unsigned drawn = most < WORDS_DRAWN ? most : WORDS_DRAWN;
    p->y += (int)drawn * WORD_HEIGHT;
    if (most > 1)
        text_at(p, LEFT - 8, p->y + 11, "r", "words");
    for (unsigned bank = 0; bank < GM_BANKS; bank++)
        if (map.words[bank] > 1)
            text_at(p, LEFT + (bank + 0.5) * width, p->y + 11, "c", "%u", map.words[bank]);
    p->y += 16;
}

/* The most words that one bank has to deliver. */
static unsigned most_words(const struct gm_access_example *x)
{
    struct gm_banks map;
    unsigned most = 0;

    gm_map_banks(x, &map);
    for (unsigned bank = 0; bank < GM_BANKS; bank++)
        most = map.words[bank] > most ? map.words[bank] : most;
    return most;
}

/* ---- A place in the source ----------------------------------------------------------------- */

/* Whether the drawings of two places would be the same. */
static bool alike(const struct gm_explain *e, const struct gm_access_site *a,
                  const struct gm_access_site *b)
{
    struct gm_site_figures f, g;

    gm_explain_site(e, a, &f);
    gm_explain_site(e, b, &g);
    return a->kind == b->kind && f.pattern == g.pattern && f.stride == g.stride &&
           f.units == g.units && f.ideal == g.ideal && a->example.bytes == b->example.bytes &&
           a->example.active == b->example.active;
}

/* The request that shows what the verdict speaks of: of a conflict, that of the warp that has most
 * words in one bank. */
static const struct gm_access_example *shown(const struct gm_access_site *s,
                                             const struct gm_site_figures *f)
{
    const struct gm_access_example *found = &s->example;
    unsigned most = most_words(found);

    for (unsigned i = 0; gm_access_is_shared(s->kind) && f->wasteful && i < GM_WARPS_SHOWN; i++) {
        unsigned words = s->warp[i].active ? most_words(&s->warp[i]) : 0;
        if (words > most) {
            most = words;
            found = &s->warp[i];
        }
    }
    return found;
}

/* Left of a drawing, below the large figure. */
static void draw_meaning(const struct page *p, int top, const struct gm_access_site *s,
                         const struct gm_site_figures *f)
{
    const char *line[2] = {"of what is", "fetched is used"};
    char width[32];

    if (gm_access_is_shared(s->kind)) {
        bool least = !f->wasteful && f->units < 1.1 * f->ideal;
        line[0] = f->units == 1 ? "wavefront"
                  : f->wasteful ? "wavefronts, in turn"
                  : least       ? "wavefronts, the least"
                                : "wavefronts, but";
        snprintf(width, sizeof width, "for %u bytes a lane", s->example.bytes);
        line[1] = f->units == 1 || f->wasteful ? ""
                  : !least                     ? "fewer as vectors"
                  : s->example.bytes > 4       ? width
                                               : "";
    } else if (s->kind != GM_GLOBAL_LOAD) {
        line[0] = "of its sectors";
        line[1] = "is written";
    }
    text_at(p, MARGIN, top + 40, "c0", "%s", line[0]);
    if (*line[1])
        text_at(p, MARGIN, top + 52, "c0", "%s", line[1]);
}

static void draw_site(struct page *p, const struct gm_explain *e, const struct gm_access_site *s,
                      unsigned more)
{
    bool shared = gm_access_is_shared(s->kind);
    const char *name = strrchr(s->file, '/'), *unit = shared ? "wavefront" : "sector";
    struct gm_site_figures f;
    char like[48] = "";

    gm_explain_site(e, s, &f);
    if (more > 0)
        snprintf(like, sizeof like, " (and %u more place%s like it)", more, more == 1 ? "" : "s");
    fprintf(p->out, "<g class=\"%s\">\n<title>", shared ? "shared" : "global");
    gm_svg_escape(p->out, s->source);
    fputs("</title>\n", p->out);
    p->y += 24;
    text_at(p, MARGIN, p->y, "b", "%s:%u: %s, %s: %.4g %s%s per request, ideal %.4g: %s%s",
            name ? name + 1 : s->file, s->line, gm_access_name(s->kind), s->memory, f.units, unit,
            f.units == 1 ? "" : "s", f.ideal, f.verdict, like);
    p->y += 14;
    text_at(p, MARGIN, p->y, "s", "%.110s", s->source);
    p->y += 8;
    int top = p->y;
    if (shared)
        draw_shared(p, shown(s, &f), f.wasteful);
    else
        draw_global(p, &s->example);
    text_at(p, MARGIN, top + 26, "big", "%.3g%s", shared ? f.units : f.used_percent,
            shared ? "" : " %");
    draw_meaning(p, top, s, &f);
    p->y = p->y > top + 54 ? p->y : top + 54;
    fputs("</g>\n", p->out);
}

/* The places to draw: the one that `problem` tells of first; of those alike one. Returns their
 * number. */
static size_t order(const struct gm_explain *e, const char *problem,
                    const struct gm_access_site **ret, unsigned *more)
{
    const struct gm_access_site *worst = gm_explain_worst(e);
    size_t count = 0;

    if (worst && strncmp(problem, worst->file, strlen(worst->file)) != 0)
        worst = NULL;
    if (worst) {
        ret[count] = worst;
        more[count++] = 0;
    }
    for (size_t i = 0; i < e->report->sites; i++) {
        const struct gm_access_site *s = &e->report->site[i];
        size_t same = 0;
        while (same < count && (ret[same] == s || !alike(e, ret[same], s)))
            same++;
        if (s == worst)
            continue;
        if (same < count) {
            more[same]++;
        } else if (count < GM_EXPLAIN_DRAWN_MAX) {
            ret[count] = s;
            more[count++] = 0;
        }
    }
    return count;
}

static void draw_kernel(struct page *p, const struct gm_explain *e)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX], measured[GM_EXPLAIN_WORDS_MAX];
    const struct gm_access_site *site[GM_EXPLAIN_DRAWN_MAX + 1];
    unsigned more[GM_EXPLAIN_DRAWN_MAX + 1];
    size_t drawn = 0, left = e->report->sites;

    gm_explain_words(e, problem, cure);
    size_t count = order(e, problem, site, more);
    p->y = 24;
    text_at(p, MARGIN, p->y, "h", "%s, kernel %s, %s", gm_op_name(e->op->kind), e->variant->name,
            gm_dtype_name(e->op->result.dtype));
    paragraph(p, problem);
    paragraph(p, cure);
    if (gm_explain_measured(e, measured))
        paragraph(p, measured);
    for (; drawn < count && p->y < PANEL_TOP_MAX; drawn++) {
        draw_site(p, e, site[drawn], more[drawn]);
        left -= 1 + more[drawn];
    }
    if (left > 0) {
        p->y += 20;
        text_at(p, MARGIN, p->y, "t", "%zu more place%s not drawn; format=json has them all", left,
                left == 1 ? " is" : "s are");
    }
    p->y += 12;
}

static void legend(struct page *p)
{
    box(p, MARGIN, p->y + 4, 18, 12, "u");
    text_at(p, MARGIN + 24, p->y + 14, "t", "asked for by lanes");
    box(p, MARGIN + 150, p->y + 4, 18, 12, "e");
    text_at(p, MARGIN + 174, p->y + 14, "t", "rest of a sector, or not touched");
    box(p, MARGIN + 390, p->y + 4, 18, 12, "k");
    text_at(p, MARGIN + 414, p->y + 14, "t", "waits for the bank: another wavefront");
    p->y += 26;
}

static const char style[] =
    "<defs><pattern id=\"used\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" class=\"pu\"/><line x1=\"0\" "
    "y1=\"0\" x2=\"0\" y2=\"5\" class=\"pl\" stroke-width=\"1\"/></pattern>"
    "<pattern id=\"wait\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(-45)\"><rect width=\"4\" height=\"4\" class=\"pk\"/><line x1=\"0\" "
    "y1=\"0\" x2=\"0\" y2=\"4\" class=\"pl\" stroke-width=\"1.6\"/></pattern></defs>\n"
    "<style>text{font:12px sans-serif;fill:#1a1a1a}.h{font-size:15px}.b,.h{font-weight:bold}"
    ".s{font:11px monospace}.c{font:9px monospace;text-anchor:middle}.c0{font:10px sans-serif}"
    ".n{font:bold 9px monospace;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:2px}"
    ".r{font:10px sans-serif;text-anchor:end}.big{font:bold 26px sans-serif}"
    ".bg{fill:#fff}.e{fill:#d9d9d9;stroke:#8c8c8c;stroke-width:.5}"
    ".u{fill:url(#used);stroke:#00486f;stroke-width:.5}"
    ".k{fill:url(#wait);stroke:#7a3600;stroke-width:1.2}"
    ".pu{fill:#0072b2}.pk{fill:#d55e00}.pl{stroke:#fff;stroke-opacity:.55}"
    "@media (prefers-color-scheme:dark){text{fill:#e8e8e8}.n{stroke:#16181d}.bg{fill:#16181d}"
    ".e{fill:#4a4d55;stroke:#777}.pu{fill:#56b4e9}.pk{fill:#e69f00}"
    ".pl{stroke:#16181d}.u{stroke:#b8dff5}.k{stroke:#ffd27f}}</style>\n";

static void write_page(FILE *out, const struct gm_explain *e, const char *body, int height)
{
    char problem[GM_EXPLAIN_WORDS_MAX], cure[GM_EXPLAIN_WORDS_MAX];
    int width = e->against ? 2 * COLUMN : COLUMN;

    gm_explain_words(e, problem, cure);
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">",
            width, height, width, height);
    gm_svg_escape(out, gm_op_name(e->op->kind));
    fputs(": memory accesses of kernel ", out);
    gm_svg_escape(out, e->variant->name);
    fputs("</title>\n<desc id=\"desc\">", out);
    gm_svg_escape(out, problem);
    fputc(' ', out);
    gm_svg_escape(out, cure);
    fputs("</desc>\n", out);
    fputs(style, out);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" class=\"bg\"/>\n%s</svg>\n", width, height,
            body);
}

char *gm_explain_svg(const struct gm_explain *e)
{
    struct gm_text_stream drawings, whole;
    char *text = NULL;

    if (!gm_text_stream_begin(&drawings))
        return NULL;
    struct page page = {.out = drawings.out};
    draw_kernel(&page, e);
    if (e->against) {
        struct page beside = {.out = drawings.out, .x = COLUMN};
        draw_kernel(&beside, e->against);
        page.y = beside.y > page.y ? beside.y : page.y;
    }
    legend(&page);
    char *body = gm_text_stream_end(&drawings, NULL);
    if (body && gm_text_stream_begin(&whole)) {
        write_page(whole.out, e, body, page.y);
        text = gm_text_stream_end(&whole, NULL);
    }
    free(body);
    return text;
}
