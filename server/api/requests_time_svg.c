/*
 * requests_time_svg.c - draws the last accounts in time: stages as a waterfall, jobs on streams,
 * and rates and latencies as they went. As requests_svg.c.
 */
#include "server/api/routes.h"
#include "server/api/stats.h"
#include "server/request/request.h"
#include "server/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 760
#define INK GM_SVG_INK
#define FAINT GM_SVG_FAINT
#define MUTED GM_SVG_MUTED

static const char *const stage_colours[GM_STAGE_COUNT] = {
    [GM_STAGE_RECEIVE] = "#56b4e9", [GM_STAGE_DECODE] = "#009e73",  [GM_STAGE_QUEUE] = "#b4bac2",
    [GM_STAGE_H2D] = "#e69f00",     [GM_STAGE_PREPARE] = "#f0e442", [GM_STAGE_KERNEL] = "#0072b2",
    [GM_STAGE_D2H] = "#d55e00",     [GM_STAGE_ENCODE] = "#cc79a7",
};

#define ROW 16
#define LABELS 230

static void draw_row(FILE *out, const struct gm_recent *recent, int y, double us_per_px)
{
    char words[96];

    snprintf(words, sizeof words, "%s %s, %s", gm_op_name(recent->op.kind), recent->variant->name,
             recent->device);
    gm_svg_text(out, LABELS - 8, y + 12, "end", INK, words);
    if (recent->started_ns > 0) /* on the device, also where its stages cannot be measured */
        fprintf(
            out,
            "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"none\" "
            "stroke=\"" MUTED "\" stroke-width=\"0.5\"/>\n",
            LABELS + (double)(recent->started_ns - recent->account.started_ns) * 1e-3 / us_per_px,
            y + 2, (double)(recent->finished_ns - recent->started_ns) * 1e-3 / us_per_px, ROW - 4);
    for (unsigned i = 0; i < recent->account.spans; i++) {
        const struct gm_span *span = &recent->account.span[i];
        double start = (double)(span->start_ns - recent->account.started_ns) * 1e-3;
        double us = (double)(span->end_ns - span->start_ns) * 1e-3;
        fprintf(out,
                "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\">"
                "<title>%s: %.1f us</title></rect>\n",
                LABELS + start / us_per_px, y + 2, fmax(us / us_per_px, 0.3), ROW - 4,
                stage_colours[span->stage], gm_stage_name(span->stage), us);
    }
}

/* Ticks at a round number of microseconds. */
static void draw_times(FILE *out, double longest_us, double us_per_px, int bottom)
{
    double step = pow(10, floor(log10(longest_us / 4)));
    char words[32];

    step *= longest_us / step > 20 ? 5 : longest_us / step > 8 ? 2 : 1;
    for (double us = 0; us <= longest_us; us += step) {
        double x = LABELS + us / us_per_px;
        gm_svg_line(out, x, 44, x, bottom, "stroke=\"" FAINT "\"");
        if (longest_us > 2000)
            snprintf(words, sizeof words, "%g ms", us * 1e-3);
        else
            snprintf(words, sizeof words, "%g us", us);
        gm_svg_text(out, x, 38, "middle", MUTED, words);
    }
}

/* One account: a line for each of its stages. */
static void draw_stages(FILE *out, const struct gm_recent *recent, double us_per_px)
{
    char words[96];

    for (unsigned i = 0; i < recent->account.spans; i++) {
        const struct gm_span *span = &recent->account.span[i];
        double start = (double)(span->start_ns - recent->account.started_ns) * 1e-3;
        double us = (double)(span->end_ns - span->start_ns) * 1e-3;
        double end = LABELS + (start + us) / us_per_px;
        int y = 46 + (int)i * ROW;
        gm_svg_text(out, LABELS - 8, y + 12, "end", INK, gm_stage_name(span->stage));
        fprintf(out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n",
                LABELS + start / us_per_px, y + 2, fmax(us / us_per_px, 0.5), ROW - 4,
                stage_colours[span->stage]);
        snprintf(words, sizeof words, "%.1f us", us);
        bool beside = end < WIDTH - 70;
        gm_svg_text(out, beside ? end + 4 : LABELS + start / us_per_px - 4, y + 12,
                    beside ? "start" : "end", MUTED, words);
    }
}

/* What the one account is of, and how long it took. */
static void one_title(const struct gm_recent *recent, char *out, size_t size)
{
    char shape[GM_SHAPE_TEXT_MAX];

    snprintf(out, size, "%s %s on %s, result %s: %.1f us", gm_op_name(recent->op.kind),
             recent->variant->name, recent->device, gm_matrix_shape_text(&recent->op.result, shape),
             recent->account.total_us);
}

char *gm_requests_waterfall_svg(const struct gm_recent *recent, size_t n,
                                const struct gm_window *window)
{
    struct gm_text_stream stream;
    double longest_us = 1;
    const unsigned rows = n == 1 ? recent->account.spans : (unsigned)n;
    int bottom = 48 + (int)rows * ROW;
    char title[256] = "The stages of the last requests, each from its arrival";

    (void)window;
    if (!gm_text_stream_begin(&stream))
        return NULL;
    if (n == 1)
        one_title(recent, title, sizeof title);
    for (size_t i = 0; i < n; i++)
        longest_us = fmax(longest_us, recent[i].account.total_us);
    double us_per_px = longest_us / (WIDTH - LABELS - 40);
    gm_svg_begin(stream.out, WIDTH, bottom + (n == 1 ? 24 : 8), title);
    for (unsigned i = 0; i < GM_STAGE_COUNT; i++) {
        fprintf(stream.out, "<rect x=\"%u\" y=\"8\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
                16 + i * 86, stage_colours[i]);
        gm_svg_text(stream.out, 30 + i * 86, 18, "start", INK, gm_stage_name((enum gm_stage)i));
    }
    if (n > 0)
        draw_times(stream.out, longest_us, us_per_px, bottom);
    else
        gm_svg_text(stream.out, 16, 44, "start", MUTED, "no request was answered yet");
    for (size_t i = 0; i < n && n > 1; i++)
        draw_row(stream.out, &recent[i], 46 + (int)i * ROW, us_per_px);
    if (n == 1) {
        draw_stages(stream.out, recent, us_per_px);
        gm_svg_text(stream.out, 16, bottom + 16, "start", MUTED, title);
    }
    fputs("</svg>\n", stream.out);
    return gm_text_stream_end(&stream, NULL);
}

/* ---- Streams. ---- */

/* Jobs without a pause as long as this between them are one burst. */
#define PAUSE_NS 20000000
#define STREAMS_MAX 64
#define STREAM_PX 34

/* A stream of a device, or the event threads beside it. */
struct stream_row {
    const char *device;
    int stream;
};

static unsigned row_of(const struct gm_recent *recent, struct stream_row row[STREAMS_MAX],
                       unsigned *rows)
{
    unsigned i = 0;

    while (i < *rows &&
           (strcmp(row[i].device, recent->device) != 0 || row[i].stream != recent->stream))
        i++;
    if (i == *rows && i < STREAMS_MAX)
        row[(*rows)++] = (struct stream_row){recent->device, recent->stream};
    return i < STREAMS_MAX ? i : STREAMS_MAX - 1;
}

/* When the last burst began. Records are in the order of their ends, so the start of each is looked
 * at. */
static int64_t burst_start(const struct gm_recent *recent, size_t n)
{
    int64_t start = n > 0 ? recent[n - 1].started_ns : 0;

    for (size_t i = n; i-- > 0;) {
        if (recent[i].finished_ns + PAUSE_NS < start)
            break;
        if (recent[i].started_ns < start)
            start = recent[i].started_ns;
    }
    return start;
}

/* Whether its job had the device within this time. to_ns: 0: until now. */
static bool is_within(const struct gm_recent *recent, int64_t from_ns, int64_t to_ns)
{
    return recent->started_ns > 0 && recent->finished_ns >= from_ns &&
           (to_ns == 0 || recent->started_ns <= to_ns);
}

static void draw_job(FILE *out, const struct gm_recent *recent, int64_t from_ns, double us_per_px,
                     int y)
{
    const double start = (double)(recent->started_ns - from_ns) * 1e-3;
    char shape[GM_SHAPE_TEXT_MAX];

    fprintf(out,
            "<g><title>%s %s, result %s</title><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" "
            "height=\"%d\" fill=\"#b4bac2\"/>",
            gm_op_name(recent->op.kind), recent->variant->name,
            gm_matrix_shape_text(&recent->op.result, shape), LABELS + start / us_per_px, y + 4,
            fmax((double)(recent->finished_ns - recent->started_ns) * 1e-3 / us_per_px, 0.5),
            STREAM_PX - 8);
    for (unsigned i = 0; i < recent->account.spans; i++) {
        const struct gm_span *span = &recent->account.span[i];
        if (span->stage < GM_STAGE_H2D || span->stage > GM_STAGE_D2H)
            continue;
        fprintf(out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>",
                LABELS + (double)(span->start_ns - from_ns) * 1e-3 / us_per_px, y + 4,
                fmax((double)(span->end_ns - span->start_ns) * 1e-3 / us_per_px, 0.3),
                STREAM_PX - 8, stage_colours[span->stage]);
    }
    fputs("</g>\n", out);
}

char *gm_requests_streams_svg(const struct gm_recent *recent, size_t n,
                              const struct gm_window *window)
{
    struct gm_text_stream stream;
    struct stream_row row[STREAMS_MAX];
    unsigned rows = 0;
    const int64_t to_ns = window->to_ns;
    int64_t from_ns = window->from_ns ? window->from_ns : burst_start(recent, n);
    double longest_us = to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-3 : 1;
    char words[64];

    if (!gm_text_stream_begin(&stream))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (!is_within(&recent[i], from_ns, to_ns))
            continue;
        row_of(&recent[i], row, &rows);
        if (to_ns == 0)
            longest_us = fmax(longest_us, (double)(recent[i].finished_ns - from_ns) * 1e-3);
    }
    double us_per_px = longest_us / (WIDTH - LABELS - 40);
    int bottom = 48 + (int)rows * STREAM_PX;
    gm_svg_begin(stream.out, WIDTH, bottom + 8,
                 window->from_ns || to_ns ? "Jobs on the streams of their devices"
                                          : "The last burst of jobs, on the streams of their "
                                            "devices");
    for (unsigned i = GM_STAGE_H2D; i <= GM_STAGE_D2H; i++) {
        fprintf(stream.out, "<rect x=\"%u\" y=\"8\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
                16 + (i - GM_STAGE_H2D) * 86, stage_colours[i]);
        gm_svg_text(stream.out, 30 + (i - GM_STAGE_H2D) * 86, 18, "start", INK,
                    gm_stage_name((enum gm_stage)i));
    }
    if (rows > 0)
        draw_times(stream.out, longest_us, us_per_px, bottom);
    else
        gm_svg_text(stream.out, 16, 44, "start", MUTED, "no request was answered yet");
    for (unsigned i = 0; i < rows; i++) {
        if (row[i].stream >= 0)
            snprintf(words, sizeof words, "%s stream %d", row[i].device, row[i].stream);
        else
            snprintf(words, sizeof words, "%s, event threads", row[i].device);
        gm_svg_text(stream.out, LABELS - 8, 48 + (int)i * STREAM_PX + 21, "end", INK, words);
    }
    /* What began before, or ended after, is cut. */
    fprintf(stream.out,
            "<clipPath id=\"time\"><rect x=\"%d\" y=\"40\" width=\"%d\" "
            "height=\"%d\"/></clipPath><g clip-path=\"url(#time)\">\n",
            LABELS, WIDTH - LABELS - 40, bottom - 40);
    for (size_t i = 0; i < n; i++)
        if (is_within(&recent[i], from_ns, to_ns))
            draw_job(stream.out, &recent[i], from_ns, us_per_px,
                     46 + (int)row_of(&recent[i], row, &rows) * STREAM_PX);
    fputs("</g>\n", stream.out);
    fputs("</svg>\n", stream.out);
    return gm_text_stream_end(&stream, NULL);
}

/* ---- As it went: rates and times by the second. ---- */

/* Stretches of time of which each has one figure. */
#define STRETCHES 60
#define PANEL 120

/* What happened in one stretch. */
struct stretch {
    double rate;          /* requests answered, a second */
    double median, worst; /* us, of their totals; the 99th percentile; -1: none was answered */
    double waiting, busy; /* jobs that waited, and that had a device: the mean over the stretch */
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* How much of [start, end) is in [from, to). */
static double overlap(int64_t start, int64_t end, double from, double to)
{
    return fmax(0, fmin((double)end, to) - fmax((double)start, from));
}

static double waiting_ns(const struct gm_recent *recent, double from, double to)
{
    double sum = 0;

    for (unsigned i = 0; i < recent->account.spans; i++)
        if (recent->account.span[i].stage == GM_STAGE_QUEUE)
            sum +=
                overlap(recent->account.span[i].start_ns, recent->account.span[i].end_ns, from, to);
    return sum;
}

/* total: room for n. */
static struct stretch measure(const struct gm_recent *recent, size_t n, double from, double to,
                              double *total)
{
    struct stretch s = {.median = -1, .worst = -1};
    size_t answered = 0;

    for (size_t i = 0; i < n; i++) {
        const struct gm_recent *r = &recent[i];
        double end = (double)r->account.started_ns + r->account.total_us * 1e3;
        if (end >= from && end < to)
            total[answered++] = r->account.total_us;
        s.waiting += waiting_ns(r, from, to) / (to - from);
        if (r->started_ns > 0) /* those of one launch share its time */
            s.busy += overlap(r->started_ns, r->finished_ns, from, to) / (to - from) /
                      (r->batch > 1 ? r->batch : 1);
    }
    s.rate = (double)answered / ((to - from) * 1e-9);
    if (answered == 0)
        return s;
    qsort(total, answered, sizeof *total, by_value);
    s.median = total[answered / 2];
    s.worst = total[(size_t)((double)answered * 0.99)];
    return s;
}

/* One figure of all stretches as a line, with gaps where there is none. */
static void draw_line(FILE *out, const double value[STRETCHES], int top, double most,
                      const char *style)
{
    const double step = (WIDTH - 80.0) / STRETCHES;
    bool drawing = false;

    fprintf(out, "<path fill=\"none\" stroke-width=\"2\" %s d=\"", style);
    for (unsigned i = 0; i < STRETCHES; i++) {
        if (value[i] < 0) {
            drawing = false;
            continue;
        }
        double x = 64 + i * step, y = top + PANEL - 34 - value[i] / most * (PANEL - 60);
        fprintf(out, "%c%.1f %.1fh%.1f", drawing ? 'L' : 'M', x, y, step);
        drawing = true;
    }
    fputs("\"/>\n", out);
}

/* second: of times, of which this is the 99th percentile; NULL: it is of numbers. */
static void draw_panel(FILE *out, int top, const char *title, const double value[STRETCHES],
                       const double second[STRETCHES])
{
    double most = 0;
    char words[64];

    for (unsigned i = 0; i < STRETCHES; i++)
        most = fmax(most, fmax(value[i], second ? second[i] : 0));
    most = most > 0 ? most : 1;
    const char *unit = !second ? "" : most >= 2000 ? " ms" : " us";
    const double scale = second && most >= 2000 ? 1e-3 : 1;
    gm_svg_text(out, 16, top + 14, "start", INK, title);
    for (int i = 0; i <= 2; i++) {
        double y = top + PANEL - 34 - i * (PANEL - 60) / 2.0;
        gm_svg_line(out, 64, y, WIDTH - 16, y, "stroke=\"" FAINT "\"");
        snprintf(words, sizeof words, "%.3g%s", most * scale * i / 2, unit);
        gm_svg_text(out, 58, y + 4, "end", MUTED, words);
    }
    if (second)
        draw_line(out, second, top, most, "stroke=\"#d55e00\" stroke-dasharray=\"5 3\"");
    draw_line(out, value, top, most, "stroke=\"#0072b2\"");
}

/* The time that is drawn: what was asked for, else the last minute; not before the oldest account,
 * of which nothing is known. */
static struct gm_window live_window(const struct gm_recent *recent, size_t n,
                                    const struct gm_window *window)
{
    struct gm_window w = *window;

    w.to_ns = w.to_ns ? w.to_ns : w.now_ns;
    w.from_ns = w.from_ns ? w.from_ns : w.to_ns - 60000000000;
    if (n > 0 && recent[0].number > 1 && recent[0].account.started_ns > w.from_ns)
        w.from_ns = recent[0].account.started_ns;
    if (w.to_ns <= w.from_ns)
        w.from_ns = w.to_ns - 1000000;
    return w;
}

char *gm_requests_live_svg(const struct gm_recent *recent, size_t n, const struct gm_window *window)
{
    const struct gm_window w = live_window(recent, n, window);
    const double step = (double)(w.to_ns - w.from_ns) / STRETCHES;
    double rate[STRETCHES], median[STRETCHES], worst[STRETCHES], waiting[STRETCHES],
        busy[STRETCHES];
    double *total = calloc(n + 1, sizeof *total);
    struct gm_text_stream stream;
    char words[64];

    if (!total || !gm_text_stream_begin(&stream)) {
        free(total);
        return NULL;
    }
    for (unsigned i = 0; i < STRETCHES; i++) {
        double from = (double)w.from_ns + i * step;
        struct stretch s = measure(recent, n, from, from + step, total);
        rate[i] = s.rate;
        median[i] = s.median;
        worst[i] = s.worst;
        waiting[i] = s.waiting;
        busy[i] = s.busy;
    }
    free(total);
    gm_svg_begin(stream.out, WIDTH, 4 * PANEL + 8, "Requests as they went");
    draw_panel(stream.out, 0, "Requests a second", rate, NULL);
    draw_panel(stream.out, PANEL, "Latency: median, and 99th percentile (dashed)", median, worst);
    draw_panel(stream.out, 2 * PANEL, "Jobs that wait", waiting, NULL);
    draw_panel(stream.out, 3 * PANEL, "Jobs on devices", busy, NULL);
    snprintf(words, sizeof words, "%.3g s, to %s", (double)(w.to_ns - w.from_ns) * 1e-9,
             window->to_ns ? "the end that was asked for" : "now");
    gm_svg_text(stream.out, WIDTH - 16, 4 * PANEL - 4, "end", MUTED,
                n > 0 ? words : "no request was answered yet");
    fputs("</svg>\n", stream.out);
    return gm_text_stream_end(&stream, NULL);
}
