/* multipart_message.h - bodies of multipart/form-data as tests put them together. */
#ifndef GM_TESTS_UNIT_MULTIPART_MESSAGE_H
#define GM_TESTS_UNIT_MULTIPART_MESSAGE_H

#include "tests/unit/check.h"
#include "tests/unit/request_bench.h"

#define MULTIPART "multipart/form-data; boundary=\"-=-\""
#define MESSAGE_MAX (1 << 16)

struct message {
    size_t len;
    char text[MESSAGE_MAX];
};

static inline void message_add(struct message *m, const void *bytes, size_t len)
{
    if (CHECK(len <= sizeof m->text - m->len)) {
        memcpy(m->text + m->len, bytes, len);
        m->len += len;
    }
}

/* type: NULL for a field of a form, which has none. */
static inline void message_add_part(struct message *m, const char *name, const char *type,
                                    const void *data, size_t len)
{
    char head[256];
    int n = snprintf(
        head, sizeof head, "---=-\r\nContent-Disposition: form-data; name=\"%s\"%s%s%s\r\n\r\n",
        name, type ? "; filename=\"x\"" : "", type ? "\r\nContent-Type: " : "", type ? type : "");

    message_add(m, head, (size_t)n);
    message_add(m, data, len);
    message_add(m, "\r\n", 2);
}

static inline void message_add_text(struct message *m, const char *name, const char *text)
{
    message_add_part(m, name, NULL, text, strlen(text));
}

static inline void message_add_end(struct message *m)
{
    message_add(m, "---=---\r\n", 9);
}

/* An NPY file of 2x2 elements. */
static inline void message_add_npy(struct message *m, const char *name, const char *descr,
                                   const void *elements, size_t len)
{
    char file[256], header[118];

    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2, 2), }",
             descr);
    snprintf(file, sizeof file, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header);
    memcpy(file + 128, elements, len);
    message_add_part(m, name, RAW, file, 128 + len);
}

#endif
