/*
 * transport.h - what a request asks of the connection it came by, so that request.c can be driven
 * without an HTTP library.
 */
#ifndef GM_SERVER_REQUEST_TRANSPORT_H
#define GM_SERVER_REQUEST_TRANSPORT_H

#include <stdbool.h>

struct gm_transport {
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
    /* Whether the peer has closed; `sending_too`: only count a close of both directions. */
    bool (*gone)(int socket, bool sending_too);
    bool pollable; /* sockets are the system's, which can be asked about many of them at once */
};

#endif
