/*
 * scripted.h - a server that answers each request with the bytes that a test wants, right or wrong.
 *
 * It keeps what it was sent. One connection at a time, on 127.0.0.1 or a Unix socket.
 */
#ifndef GM_TESTS_CLIENTS_SCRIPTED_H
#define GM_TESTS_CLIENTS_SCRIPTED_H

#include <pthread.h>
#include <stddef.h>

#define SCRIPTED_MAX 8
#define SCRIPTED_REQUEST_BYTES 65536

/* What becomes of the connection after a reply. */
enum scripted_then { KEEP, CLOSE, STALL /* until the server is stopped */ };

struct scripted_reply {
    const char *bytes; /* as they go over the wire */
    size_t len;
    enum scripted_then then;
};
#define REPLY(text, then)                                                                          \
    {                                                                                              \
        text, sizeof(text) - 1, then                                                               \
    }

struct scripted {
    char url[128]; /* of a client: http://127.0.0.1:PORT or unix:PATH */
    struct scripted_reply reply[SCRIPTED_MAX];
    size_t count;
    /* Once it is stopped: what came. */
    size_t requests, connections;
    char request[SCRIPTED_MAX][SCRIPTED_REQUEST_BYTES];
    size_t request_len[SCRIPTED_MAX];

    int listener, stop[2];
    pthread_t thread;
    char path[108];
};

/* unix_path: NULL for TCP. Ends the program where that fails. */
struct scripted *scripted_start(const char *unix_path, const struct scripted_reply *replies,
                                size_t count);
void scripted_stop(struct scripted *server);
void scripted_free(struct scripted *server);

#endif
