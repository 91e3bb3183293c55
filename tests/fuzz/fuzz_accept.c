/*
 * fuzz_accept.c - content negotiation. Input: the preferred format, then the Accept header's lines,
 * each ended by a newline; and each line also as a media type of a body.
 *
 * Checked: weights are between 0 and 1; the format chosen is one of the table or a drawing, has the
 * largest weight, and the preferred one wins a tie; nothing is acceptable exactly where all weights
 * are 0; letter case does not matter, nor whether the lines are joined by commas (RFC 9110, 5.3).
 */
#include "server/request/head.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>

#define FORMATS_MAX 16
#define LINES_MAX 16

/* What a result can be written as: the table, and then a drawing. */
static const struct gm_codec *written(size_t i)
{
    return i > 0 && !gm_codec_at(i) && gm_codec_at(i - 1) ? &gm_codec_svg : gm_codec_at(i);
}

/* How much each of them is wanted, and what is chosen. */
struct choice {
    enum gm_status status;
    const struct gm_codec *chosen;
    double weight[FORMATS_MAX];
};

static struct choice choose(const char *accept, const struct gm_codec *preferred)
{
    struct choice choice = {.chosen = NULL};
    struct gm_error err = {0};
    double largest = 0;

    choice.status = gm_accept_choose(accept, preferred, &choice.chosen, &err);
    for (size_t i = 0; written(i); i++) {
        MUST(i < FORMATS_MAX);
        double weight = gm_accept_weight(accept, written(i)->media_type);
        MUST(weight >= 0 && weight <= 1);
        choice.weight[i] = weight;
        largest = weight > largest ? weight : largest;
    }
    if (choice.status != GM_OK) {
        fuzz_check_error(choice.status, &err);
        MUST(choice.status == GM_NOT_ACCEPTABLE && !choice.chosen && largest == 0);
        return choice;
    }
    MUST(largest > 0 && choice.chosen);
    MUST(gm_accept_weight(accept, choice.chosen->media_type) == largest);
    MUST(choice.chosen == preferred || gm_accept_weight(accept, preferred->media_type) < largest);
    return choice;
}

static void must_be_alike(const struct choice *one, const struct choice *other)
{
    MUST(one->status == other->status && one->chosen == other->chosen);
    for (size_t i = 0; i < FORMATS_MAX; i++)
        MUST(one->weight[i] == other->weight[i]);
}

/* A body's type: found without regard to case, and found again by its own name. */
static void check_media_type(const char *line)
{
    size_t len = strlen(line);
    const struct gm_codec *codec = gm_codec_by_media_type(line, len);
    const struct gm_codec *begun = gm_codec_by_first_bytes(line, len);
    if (codec)
        MUST(gm_codec_by_media_type(codec->media_type, len) == codec);
    if (begun)
        MUST(begun->name[0]);
}

static const struct gm_codec *take_format(struct fuzz_input *in)
{
    unsigned n = 0;
    while (gm_codec_at(n))
        n++;
    return gm_codec_at(fuzz_choice(in, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz_input in = {bytes, len};
    const struct gm_codec *preferred = take_format(&in);
    char *line[LINES_MAX], *joined = fuzz_alloc(in.left + 1), *p = joined;
    struct gm_request_head head = {.method = "GET"};
    unsigned n = 0;

    for (; in.left > 0 && n < LINES_MAX; n++) {
        const uint8_t *end = memchr(in.at, '\n', in.left);
        size_t left = end ? (size_t)(end - in.at) : in.left;
        /* Header values hold no NUL: text ends there. */
        line[n] = fuzz_string(in.at, left);
        gm_head_header(&head, "Accept", line[n], strlen(line[n]));
        if (n > 0)
            *p++ = ',';
        p = stpcpy(p, line[n]);
        in.at += left + (end != NULL);
        in.left -= left + (end != NULL);
        check_media_type(line[n]);
    }
    *p = '\0';
    struct choice choice = choose(head.accept, preferred), other = choose(joined, preferred);

    must_be_alike(&choice, &other);
    for (p = joined; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    other = choose(joined, preferred);
    must_be_alike(&choice, &other);
    gm_head_clear(&head);
    for (unsigned i = 0; i < n; i++)
        free(line[i]);
    free(joined);
    return 0;
}
