/*
 * config_values.c - reads single values of options, and the files that they name.
 *
 * Apart from the table of config.c, because none of it knows an option.
 */
#include "server/config.h"

#include "kernels/backend.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PATH_MAX (sizeof((struct sockaddr_un *)NULL)->sun_path)

char *gm_config_trim(char *text)
{
    static const char blank[] = " \t\r";
    size_t len;

    text += strspn(text, blank);
    for (len = strlen(text); len > 0 && strchr(blank, text[len - 1]); len--)
        ;
    text[len] = '\0';
    return text;
}

/* "unix:PATH" or "unix:PATH,mode=0660". Without a mode, only gemmd's own user may connect. */
static bool parse_unix(const char *text, struct gm_listen *ret)
{
    const char *option = strstr(text, ",mode=");
    size_t len = option ? (size_t)(option - text) : strlen(text);
    char *end = NULL;

    if (len == 0 || len >= UNIX_PATH_MAX)
        return false;
    ret->mode = 0600;
    if (option) {
        const char *digits = option + strlen(",mode=");
        unsigned long mode = strtoul(digits, &end, 8);
        if (!isdigit((unsigned char)*digits) || *end || mode > 0777)
            return false;
        ret->mode = (unsigned)mode;
    }
    snprintf(ret->host, sizeof ret->host, "%.*s", (int)len, text);
    ret->plain = true;
    return true;
}

static bool parse_address(const char *text, struct gm_listen *ret)
{
    size_t len = strlen(text), plain_len = strlen(",plain");

    ret->plain = len > plain_len && strcmp(text + len - plain_len, ",plain") == 0;
    if (ret->plain)
        len -= plain_len;
    const char *colon = memrchr(text, ':', len), *host = text;
    if (!colon)
        return false;
    size_t host_len = (size_t)(colon - text), port_len = len - host_len - 1;
    if (host_len >= 2 && host[0] == '[' && host[host_len - 1] == ']') {
        host++;
        host_len -= 2;
    } else if (memchr(text, ':', host_len)) {
        return false; /* IPv6 without brackets is ambiguous */
    }
    if (host_len == 0 || host_len >= sizeof ret->host)
        return false;
    if (port_len == 0 || port_len >= sizeof ret->port ||
        strspn(colon + 1, "0123456789") != port_len || atoi(colon + 1) > 65535)
        return false;
    snprintf(ret->host, sizeof ret->host, "%.*s", (int)host_len, host);
    snprintf(ret->port, sizeof ret->port, "%.*s", (int)port_len, colon + 1);
    return true;
}

bool gm_config_listen(const char *text, struct gm_listen *ret)
{
    struct gm_listen listen = {.mode = 0};
    bool read = strncmp(text, "unix:", 5) == 0 ? parse_unix(text + 5, &listen)
                                               : parse_address(text, &listen);

    if (read)
        *ret = listen;
    return read;
}

/* Parses digits without a sign; *ret_rest is what follows. Returns UINT64_MAX if it does not
 * fit. */
static bool parse_digits(const char *text, uint64_t *ret, const char **ret_rest)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    *ret = strtoull(text, &end, 10);
    *ret_rest = end;
    return true;
}

bool gm_config_size(const char *text, uint64_t *ret)
{
    return gm_read_size(text, strlen(text), ret);
}

bool gm_config_count(const char *text, uint64_t *ret)
{
    uint64_t n;
    const char *rest;

    if (!parse_digits(text, &n, &rest) || *rest)
        return false;
    *ret = n;
    return true;
}

bool gm_config_duration(const char *text, uint64_t *ret)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;

    /* Digits and a point only: strtod also accepts "0x10" and "1e3". */
    size_t digits = strspn(text, "0123456789.");
    if (!isdigit((unsigned char)*text))
        return false;
    double n = strtod(text, &end);
    if (end != text + digits)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) != 0)
            continue;
        double ms = ceil(n * units[i].ms);
        uint64_t whole = ms < 0x1p63 ? (uint64_t)ms : UINT64_MAX;
        *ret = whole;
        return true;
    }
    return false;
}

/* Reads all of an open file. Returns false with errno. */
static bool read_all(int fd, struct gm_file *file, size_t most)
{
    while (file->len <= most) {
        ssize_t n = read(fd, file->bytes + file->len, most + 1 - file->len);
        if (n == 0)
            return true;
        if (n > 0)
            file->len += (size_t)n;
        else if (errno != EINTR)
            return false;
    }
    errno = EFBIG;
    return false;
}

enum gm_status gm_file_read(const char *path, size_t most, struct gm_file *ret,
                            struct gm_error *err)
{
    struct gm_file file = {.bytes = calloc(1, most + 1)};
    struct stat about;
    /* Not to wait for a writer, if it is a pipe by mistake. */
    int fd = file.bytes ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

    if (fd < 0 || fstat(fd, &about) != 0 || !read_all(fd, &file, most)) {
        int fault = file.bytes ? errno : ENOMEM;
        if (fd >= 0)
            close(fd);
        gm_file_free(&file);
        return gm_fail(err, GM_INTERNAL, "cannot read %s: %s", path,
                       fault == EFBIG ? "it is too large" : strerror(fault));
    }
    close(fd);
    file.mode = about.st_mode;
    *ret = file;
    return GM_OK;
}

void gm_file_free(struct gm_file *file)
{
    if (file->bytes)
        explicit_bzero(file->bytes, file->len);
    free(file->bytes);
    *file = (struct gm_file){.bytes = NULL};
}

bool gm_config_add_listens(const char *text, struct gm_config *config)
{
    char word[GM_CONFIG_TEXT_MAX];

    text += strspn(text, " \t");
    if (!*text)
        return false;
    for (; *text; text += strspn(text, " \t")) {
        struct gm_listen listen = {.mode = 0};
        size_t len = strcspn(text, " \t");
        if (len >= sizeof word || config->listens == GM_LISTENS_MAX)
            return false;
        snprintf(word, sizeof word, "%.*s", (int)len, text);
        if (!gm_config_listen(word, &listen))
            return false;
        config->listen[config->listens++] = listen;
        text += len;
    }
    return true;
}

bool gm_config_backend(const char *text, char ret[GM_BACKEND_NAME_MAX])
{
    bool known = strcmp(text, "auto") == 0;

    for (size_t i = 0; gm_backend_at(i); i++)
        known = known || strcmp(text, gm_backend_at(i)->name) == 0;
    if (known)
        snprintf(ret, GM_BACKEND_NAME_MAX, "%s", text);
    return known;
}
