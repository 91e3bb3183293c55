/*
 * request.h - one request, from its headers to the last byte of its reply. Knows no HTTP
 * library: http.c feeds it events and carries out what it decides.
 *
 * State      who runs it        who owns its buffers
 * BODY       an event thread    the decoder fills the operands' buffers; the text is collected
 * DISCARD    an event thread    the reply is set; the rest of the body is dropped
 * WORK       a codec worker     the worker: it decodes text into operands, or the result to text
 * QUEUED     the scheduler      the scheduler and its device: operands, result, op
 * RAN        an event thread    the request: operands are given back, the result is encoded
 * REPLY      an event thread    the reply: the library reads result or text until it is sent
 *
 * In WORK and QUEUED the connection is suspended: the library neither calls the handler nor
 * frees anything, so whoever owns the request then needs no lock. The hand-over back is resume(),
 * the owner's last act. A request is freed when both the library is done with it and its
 * reply's last byte is sent (references).
 */
#ifndef GM_SERVER_REQUEST_REQUEST_H
#define GM_SERVER_REQUEST_REQUEST_H

#include "server/request/account.h"
#include "server/request/plan.h"
#include "server/request/reply.h"
#include "server/server.h"

#include <stdbool.h>

/* What a request asks of the connection it came by, so that request.c can be driven without an HTTP
 * library. */
struct gm_transport {
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
    /* Whether the peer has closed; `sending_too`: only count a close of both directions. */
    bool (*gone)(int socket, bool sending_too);
    bool pollable; /* sockets are the system's, which can be asked about many of them at once */
};

enum gm_request_state {
    GM_REQUEST_BODY,
    GM_REQUEST_DISCARD,
    GM_REQUEST_WORK,
    GM_REQUEST_QUEUED,
    GM_REQUEST_RAN,
    GM_REQUEST_REPLY
};

struct gm_request {
    struct gm_server *server;
    LIST_ENTRY(gm_request) link; /* in server->requests, under its mutex */
    _Atomic int references;
    enum gm_request_state state;

    /* The connection, from the first call of the library to its last. */
    struct {
        const struct gm_transport *transport;
        void *handle;
        int socket;
        bool suspended;    /* so the caller is not the connection's event thread */
        _Atomic int taken; /* whoever sets it first may answer */
        bool sent_raw;     /* the reply went out without the HTTP library knowing */
    } connection;

    /* Known on the headers, and constant since. The strings are the library's. */
    struct gm_request_head head;
    char id[GM_REQUEST_ID_MAX];
    const struct gm_route *route; /* NULL: there is none */
    char allow[GM_ALLOW_MAX];     /* for 405 */

    /* Filled while the body is read (BODY, WORK); the plan is constant from then on. */
    struct gm_body body;
    uint64_t discarded; /* bytes that came after an error */
    struct gm_parsed parsed;
    struct gm_plan plan;

    /* While it runs (WORK, QUEUED, RAN): whoever runs it owns all of this, and the operands. */
    struct {
        int64_t body_end_ns, deadline_ns; /* when the body was there; when the answer must be */
        struct gm_allocation result;
        struct gm_job job;
        struct gm_work work;
        struct gm_access_report accesses; /* of a kernel that was traced */
        void *state;                      /* the endpoint's own; route->drop gives it back */
    } run;

    /* The answer: whoever runs it writes it, then the library reads it (REPLY). */
    struct gm_error error; /* error.status is GM_OK until something fails */
    struct gm_reply reply;
    struct gm_allocation reply_text; /* that reply.body may point into */

    /* Accounts of all states. */
    struct gm_reservation reservation; /* of the memory limit: all blocks here are counted in it */
    struct gm_account account;
};

struct gm_request *gm_request_of_work(struct gm_work *work);

/* A request whose headers are known; NULL without memory. The head is copied, its strings not. */
struct gm_request *gm_request_new(struct gm_server *server, const struct gm_request_head *head,
                                  const struct gm_transport *carrier, void *connection, int socket);
/* Drops a reference; the last frees. */
void gm_request_unref(struct gm_request *request);

/* Decides what can be decided on the headers; state BODY or DISCARD afterwards. */
void gm_request_begin(struct gm_request *request);
/* More of the body. */
void gm_request_push(struct gm_request *request, const void *bytes, size_t len);
/* The body is complete, or the connection was resumed: goes as far as it can. */
enum gm_progress gm_request_advance(struct gm_request *request);

/* Whether the answer still matters: GM_DEADLINE, GM_CANCELLED or GM_DRAINING if not. For those
 * who work on a suspended request, which nobody else watches. */
enum gm_status gm_request_still_wanted(const struct gm_request *request, struct gm_error *err);

/* Waits for no more of the body; the reply says so, and why, if nothing was wrong before. */
void gm_request_give_up(struct gm_request *request, const char *why);

/* Gives everything back but the reply, and makes that a problem document of *error: GM_READY. */
enum gm_progress gm_request_fail(struct gm_request *request, const struct gm_error *error);
/* Makes the reply a text, for which the request is charged nothing; takes it over: GM_READY. NULL:
 * there was no memory for it, and that is what is replied. */
enum gm_progress gm_request_reply(struct gm_request *request, const char *media_type, char *text);
/* Suspends the connection, if it is not; a worker is to run() this, of such cost: GM_PENDING. */
enum gm_progress gm_request_to_worker(struct gm_request *request, void (*run)(struct gm_work *work),
                                      double cost_s);
/* Suspends the connection, if it is not. */
void gm_request_suspend(struct gm_request *request);
/* Hands a suspended request back to its event thread, in `state`: the caller's last act. */
void gm_request_resume(struct gm_request *request, enum gm_request_state state);

/* The plan, with what is known so far; and once there are operands, memory for it is reserved. */
enum gm_status gm_request_plan(struct gm_request *request, enum gm_plan_operands operands,
                               struct gm_error *err);

/* The job: runs what is planned, for this request's client. What is special about it (repeat,
 * exclusive, report, another callback) is set afterwards, and whose it is by gm_request_set_slot,
 * which estimates what it takes. */
void gm_request_set_job(struct gm_request *request, void (*done)(struct gm_job *job));
void gm_request_set_slot(struct gm_request *request);
/* What it took: the next of its kind is expected to take as long. */
void gm_request_learn_cost(struct gm_request *request);
struct gm_request *gm_request_of_job(const struct gm_job *job);
/* Whether the client has gone: for struct gm_job. */
bool gm_request_job_abandoned(const struct gm_job *job, bool running);

#endif
