/*
 * source.c - where the bytes of a body come from: memory, a file or a callback, read as curl asks
 * for them. A source that ends early fails the exchange, and is never padded.
 */
#include "clients/c/lib/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gemmd_status open_upload(struct gm_upload *upload, const struct gemmd_source *source,
                                     enum gemmd_status *status, struct gemmd_error *err)
{
    *upload = (struct gm_upload){
        .source = source, .size = source->size, .fd_start = -1, .err = err, .status = status};
    struct stat about;
    switch (source->origin) {
    case GEMMD_FROM_MEMORY:
        if (source->size == GEMMD_SIZE_UNKNOWN || (!source->data && source->size > 0))
            return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "a body in memory needs data and size");
        return GEMMD_OK;
    case GEMMD_FROM_FD:
        if (fstat(source->fd, &about) != 0)
            return gm_client_fail(err, GEMMD_BAD_FILE, "a file cannot be read: %s",
                                  strerror(errno));
        upload->fd_start = S_ISREG(about.st_mode) ? lseek(source->fd, 0, SEEK_CUR) : -1;
        if (upload->size == GEMMD_SIZE_UNKNOWN && upload->fd_start >= 0)
            upload->size =
                about.st_size > upload->fd_start ? (uint64_t)(about.st_size - upload->fd_start) : 0;
        return GEMMD_OK;
    case GEMMD_FROM_CALLBACK:
        if (source->read)
            return GEMMD_OK;
        break;
    }
    return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "a body comes from nowhere");
}

/* -1 where it fails: *upload->err then says why. */
static int64_t read_some(struct gm_upload *upload, char *buffer, size_t len)
{
    const struct gemmd_source *source = upload->source;
    int64_t got;

    if (source->origin == GEMMD_FROM_MEMORY) {
        memcpy(buffer, (const char *)source->data + upload->at, len);
        return (int64_t)len;
    }
    if (source->origin == GEMMD_FROM_CALLBACK) {
        got = source->read(source->cls, buffer, len);
        if (got < 0 || (uint64_t)got > len)
            *upload->status =
                gm_client_fail(upload->err, GEMMD_BAD_FILE, "what was to be sent cannot be read");
        return (uint64_t)got > len ? -1 : got;
    }
    do
        got = upload->fd_start >= 0
                  ? pread(source->fd, buffer, len, upload->fd_start + (off_t)upload->at)
                  : read(source->fd, buffer, len);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        *upload->status = gm_client_fail(upload->err, GEMMD_BAD_FILE,
                                         "what was to be sent cannot be read: %s", strerror(errno));
    return got;
}

size_t gm_upload_read(char *buffer, size_t size, size_t count, void *cls)
{
    struct gm_upload *upload = cls;
    uint64_t len = (uint64_t)size * count, left = upload->size - upload->at;

    if (upload->size != GEMMD_SIZE_UNKNOWN && len > left)
        len = left;
    if (len == 0)
        return 0;
    int64_t got = read_some(upload, buffer, (size_t)len);
    if (got == 0 && upload->size != GEMMD_SIZE_UNKNOWN) {
        *upload->status = gm_client_fail(
            upload->err, GEMMD_BAD_FILE, "what was to be sent ends after %llu of %llu bytes",
            (unsigned long long)upload->at, (unsigned long long)upload->size);
        got = -1;
    }
    if (got < 0)
        return CURL_READFUNC_ABORT;
    upload->at += (uint64_t)got;
    return (size_t)got;
}

int gm_upload_seek(void *cls, curl_off_t offset, int origin)
{
    struct gm_upload *upload = cls;

    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    if ((uint64_t)offset == upload->at)
        return CURL_SEEKFUNC_OK;
    if (upload->size != GEMMD_SIZE_UNKNOWN && (uint64_t)offset > upload->size)
        return CURL_SEEKFUNC_FAIL;
    if (upload->source->origin == GEMMD_FROM_MEMORY || upload->fd_start >= 0) {
        upload->at = (uint64_t)offset;
        return CURL_SEEKFUNC_OK;
    }
    return CURL_SEEKFUNC_CANTSEEK;
}

enum gemmd_status gm_body_open(struct gm_body *body, const struct gemmd_request *request,
                               enum gemmd_status *status, struct gemmd_error *err)
{
    if (request->source_count > GM_SOURCES_MAX)
        return gm_client_fail(err, GEMMD_BAD_ARGUMENT, "a body has %d sources at most",
                              GM_SOURCES_MAX);
    body->count = request->source_count;
    body->now = 0;
    for (size_t i = 0; i < body->count; i++) {
        if (!request->sources[i].name != !request->sources[0].name)
            return gm_client_fail(err, GEMMD_BAD_ARGUMENT,
                                  "the sources of a body all have names, or none has");
        enum gemmd_status opened = open_upload(&body->upload[i], &request->sources[i], status, err);
        if (opened != GEMMD_OK)
            return opened;
    }
    return GEMMD_OK;
}

uint64_t gm_body_bytes(const struct gm_body *body)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < body->count; i++) {
        if (body->upload[i].size > INT64_MAX - sum)
            return GEMMD_SIZE_UNKNOWN;
        sum += body->upload[i].size;
    }
    return sum;
}

size_t gm_body_read(char *buffer, size_t size, size_t count, void *cls)
{
    struct gm_body *body = cls;

    for (; body->now < body->count; body->now++) {
        size_t got = gm_upload_read(buffer, size, count, &body->upload[body->now]);
        if (got > 0)
            return got;
    }
    return 0;
}

/* To the beginning, which is all that curl asks for when it sends anew. */
int gm_body_seek(void *cls, curl_off_t offset, int origin)
{
    struct gm_body *body = cls;

    if (offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    for (size_t i = 0; i < body->count; i++) {
        int sought = gm_upload_seek(&body->upload[i], 0, SEEK_SET);
        if (sought != CURL_SEEKFUNC_OK)
            return sought;
    }
    body->now = 0;
    return CURL_SEEKFUNC_OK;
}
