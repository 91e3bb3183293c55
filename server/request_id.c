#include "server/request_id.h"

#include <ctype.h>
#include <string.h>
#include <sys/random.h>

static const char hex[] = "0123456789abcdef";

/* The trace id of a W3C traceparent: version "-" 32 hex digits "-" 16 "-" 2, lower case, neither
 * id all zero, version not ff; later versions may go on after a dash. */
static bool trace_id(const char *text, char out[GM_REQUEST_ID_MAX])
{
    if (!text || strspn(text, hex) != 2 || memcmp(text, "ff", 2) == 0 || text[2] != '-' ||
        strspn(text + 3, hex) != 32 || text[35] != '-' || strspn(text + 36, hex) != 16 ||
        text[52] != '-' || strspn(text + 53, hex) != 2)
        return false;
    if (text[55] != '\0' && (memcmp(text, "00", 2) == 0 || text[55] != '-'))
        return false;
    if (strspn(text + 3, "0") >= 32 || strspn(text + 36, "0") >= 16)
        return false;
    memcpy(out, text + 3, 32);
    out[32] = '\0';
    return true;
}

static bool plain_id(const char *text, char out[GM_REQUEST_ID_MAX])
{
    size_t len = text ? strlen(text) : 0;

    if (len == 0 || len >= GM_REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
            return false;
    memcpy(out, text, len + 1);
    return true;
}

void gm_request_id(const struct gm_request_head *head, char out[GM_REQUEST_ID_MAX])
{
    unsigned char bytes[16] = {0};

    if (trace_id(head->traceparent, out) || plain_id(head->request_id, out))
        return;
    ssize_t got = getrandom(bytes, sizeof bytes, 0);
    (void)got; /* of 16 bytes it cannot fail once the pool is up, and an id need not be secret */
    for (size_t i = 0; i < sizeof bytes; i++) {
        *out++ = hex[bytes[i] >> 4];
        *out++ = hex[bytes[i] & 15];
    }
    *out = '\0';
}
