/*
 * svg.c - draws the parts of pictures; see text.h.
 */
#include "server/request/text.h"

void gm_svg_escape(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
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

void gm_svg_begin(FILE *out, int width, int height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" "
            "fill=\"" GM_SVG_INK "\">\n<title>",
            width, height, width, height);
    gm_svg_escape(out, title);
    fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", out);
}

void gm_svg_text(FILE *out, double x, double y, const char *anchor, const char *fill,
                 const char *words)
{
    fprintf(out,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" paint-order=\"stroke\" "
            "stroke=\"#fff\" stroke-width=\"4\">",
            x, y, anchor, fill);
    gm_svg_escape(out, words);
    fputs("</text>\n", out);
}

void gm_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
            style);
}
