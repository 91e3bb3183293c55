/*
 * fuzz_config.c - the file of --config: its lines, and the values of all options.
 *
 * Checked: each fault is counted and said in one printable line that begins with path and number; a
 * file read twice gives the same; what is accepted is within its bounds, so that strings end and
 * addresses are no more than fit.
 */
#include "server/config.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>

static unsigned read_into(struct gm_config *config, const uint8_t *bytes, size_t len, char **ret)
{
    size_t size;
    FILE *faults = open_memstream(ret, &size);

    MUST(faults);
    memset(config, 0, sizeof *config);
    unsigned n = gm_config_read(config, "a.conf", (const char *)bytes, len, faults);
    MUST(fclose(faults) == 0);
    return n;
}

/* As many lines as there were faults, none of which can do harm to a terminal. */
static void check_faults(unsigned faults, const char *text)
{
    unsigned lines = 0;

    while (*text) {
        const char *end = strchr(text, '\n');
        unsigned number;
        MUST(end && sscanf(text, "gemmd: a.conf:%u: ", &number) == 1 && number > 0);
        for (; text < end; text++)
            MUST(isprint((unsigned char)*text));
        text = end + 1;
        lines++;
    }
    MUST(lines == faults);
}

#define MUST_END(field) MUST(memchr((field), '\0', sizeof(field)))

static void check_values(const struct gm_config *config)
{
    MUST(config->listens <= GM_LISTENS_MAX && config->queue_limit <= GM_QUEUE_LIMIT_MAX);
    MUST(config->timeout_ms <= GM_TIMEOUT_MS_MAX && config->log_level < GM_LOG_LEVEL_COUNT);
    for (unsigned i = 0; i < config->listens; i++) {
        MUST_END(config->listen[i].host);
        MUST_END(config->listen[i].port);
        MUST(*config->listen[i].host && config->listen[i].mode <= 0777);
        MUST(*config->listen[i].port ? atoi(config->listen[i].port) <= 65535
                                     : strlen(config->listen[i].host) < 108);
    }
    MUST_END(config->tls_cert);
    MUST_END(config->tls_key);
    MUST_END(config->tls_client_ca);
    MUST_END(config->tls_priority);
    MUST_END(config->shared_memory);
    MUST_END(config->backend);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct gm_config one, other;
    char *said, *again;
    uint8_t *copy = fuzz_alloc(len);

    if (len > 0)
        memcpy(copy, bytes, len);
    unsigned faults = read_into(&one, copy, len, &said);
    if (faults == 0) {
        /* What refused values leave behind is not read by anybody. */
        check_values(&one);
        MUST(read_into(&other, copy, len, &again) == 0 && memcmp(&one, &other, sizeof one) == 0);
        free(again);
    }
    check_faults(faults, said);
    free(said);
    free(copy);
    return 0;
}
