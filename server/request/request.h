/*
 * request.h - one request, from its headers to the last byte of its reply.
 *
 * It knows no HTTP library: http.c passes it events and does what it decides.
 *
 * In WORK and QUEUED the connection is suspended: the library neither calls the handler nor frees
 * anything, so the request's owner needs no lock. The owner's last act is resume(), which hands the
 * request back. The request is freed when the library is done with it and the last byte of its
 * reply is sent (references).
 */
#ifndef GM_SERVER_REQUEST_REQUEST_H
#define GM_SERVER_REQUEST_REQUEST_H

#include "server/request/account.h"
#include "server/request/plan.h"
#include "server/request/reply.h"
#include "server/server.h"

#include <stdbool.h>

/* What a request needs of its connection. A table of functions, so that tests can drive request.c
 * without an HTTP library. */
struct gm_transport {
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
    /* Whether the peer has closed. sending_too: only if it has closed both directions. */
    bool (*gone)(int socket, bool sending_too);
    bool pollable; /* sockets are real ones, which poll(2) can check many at a time */
    /* Writes the last bytes of the connection at once, past the HTTP library, and closes the
     * sending half. Returns false if they do not fit, or no more can be sent. */
    bool (*send_last)(void *connection, int socket, const void *bytes, size_t len);
    bool any_thread; /* whether others than the event thread may call send_last */
};

/*
 * State      who runs it        who owns its buffers
 * BODY       an event thread    the decoder fills the operands' buffers; text is collected
 * DISCARD    an event thread    the reply is set; the rest of the body is dropped
 * WORK       a codec worker     the worker: it decodes text to operands, or encodes the result
 * QUEUED     the scheduler      the scheduler and its device: operands, result, op
 * RAN        an event thread    the request: operands are freed, the result is encoded
 * REPLY      an event thread    the reply: the library reads result or text until it is sent
 */
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
    struct gm_request_list *list; /* of server->being_served */
    LIST_ENTRY(gm_request) link;  /* guarded by its mutex */
    _Atomic int references;
    enum gm_request_state state;

    /* The connection, from the library's first call to its last. */
    struct {
        const struct gm_transport *transport;
        void *handle;
        int socket;
        bool suspended;            /* then the caller is not the connection's event thread */
        _Atomic int taken;         /* the thread that sets it first may answer */
        bool sent_raw;             /* the reply was written directly to the socket */
        struct gm_refusal refused; /* what another thread answered, with the list's mutex held */
    } connection;

    /* Set when the headers are complete, constant from then on. */
    struct gm_request_head head;
    char id[GM_REQUEST_ID_MAX];
    const struct gm_route *route; /* NULL: no such route */
    struct gm_caller caller;
    char allow[GM_ALLOW_MAX]; /* the Allow header of a 405 */

    /* What the client's quota is charged with. The current owner writes it. */
    struct {
        bool entered, is_job;  /* the quota let it in, and counts it as an operation */
        bool counted;          /* in the client's counters */
        int64_t device_ns;     /* that its jobs had */
        uint64_t body_sent;    /* of the reply, once it is about to be sent */
        uint64_t body_charged; /* body bytes that were charged when it came in */
        unsigned wait_s;       /* Retry-After, where the quota refused it */
    } charged;

    /* Set while the body is read (BODY, WORK). Later its handler alone changes the plan. */
    struct gm_body body;
    uint64_t discarded; /* body bytes received after an error */
    struct gm_parsed parsed;
    struct gm_plan plan;

    /* While the request runs (WORK, QUEUED, RAN): its current owner owns all of this, and the
     * operands. */
    struct {
        int64_t body_end_ns, deadline_ns; /* when the body was complete; when the answer is due */
        struct gm_allocation result;
        struct gm_matrix_use kept; /* the named matrix that the result becomes, or the reply is */
        struct gm_job job;
        struct gm_work work;
        /* Access reports of a traced kernel, and of the one that it is set against. */
        struct gm_access_report accesses, against;
        void *state; /* the endpoint's own state; route->drop frees it */
    } run;

    /* The answer: the current owner writes it, then the library reads it (REPLY). */
    struct gm_error error; /* error.status is GM_OK until something fails */
    struct gm_reply reply;
    struct gm_allocation reply_text; /* reply.body may point into it */

    /* Used in all states. */
    struct gm_reservation reservation; /* counts all allocations here against the memory limit */
    struct gm_account account;
};

struct gm_request *gm_request_of_work(struct gm_work *work);

/* Call before the first request, and after the last one. Fails with GM_INTERNAL if a mutex cannot
 * be created. */
enum gm_status gm_requests_open(struct gm_server *server, struct gm_error *err);
void gm_requests_close(struct gm_server *server);
/* How many are being served. */
uint64_t gm_requests_count(struct gm_server *server);

/* Makes a request from its head, which it takes over; NULL if memory ran out. */
struct gm_request *gm_request_new(struct gm_server *server, struct gm_request_head *head,
                                  const struct gm_transport *transport, void *connection,
                                  int socket);
/* Drops a reference; the last one frees the request. */
void gm_request_unref(struct gm_request *request);

/* Checks the head. The state afterwards is BODY or DISCARD. */
void gm_request_begin(struct gm_request *request);
/* Where the next bytes of the body are to go, one place after the other; returns how many: 0 if
 * gm_request_push must see them. */
unsigned gm_request_places(const struct gm_request *request, struct iovec place[GM_OPERANDS_MAX]);
/* Passes the next bytes of the body. NULL: they are in their places. */
void gm_request_push(struct gm_request *request, const void *bytes, size_t len);
/* Call when the body is complete or the connection was resumed: goes on as far as possible. */
enum gm_progress gm_request_advance(struct gm_request *request);

/* Whose named matrices the request means. */
struct gm_matrix_caller gm_request_matrix_caller(const struct gm_request *request);
/* What it says of the matrix that it keeps. The strings belong to the request. */
struct gm_matrix_terms gm_request_matrix_terms(const struct gm_request *request);
struct gm_conditions gm_request_conditions(const struct gm_request *request);
/* Publishes the request's matrix, and says so in the reply's headers. *ret_created: a new name. */
enum gm_status gm_request_publish(struct gm_request *request, bool *ret_created,
                                  struct gm_error *err);
/* The body's events `ref` and `ref_data`. */
enum gm_status gm_request_ref(void *request, const char *name, struct gm_matrix_use *ret,
                              uint64_t *add_bytes, struct gm_error *err);
enum gm_status gm_request_ref_data(void *request, unsigned index, struct gm_error *err);
/* Chooses the device on which the operands are, if that has not been done. */
enum gm_status gm_request_pick_device(struct gm_request *request, struct gm_error *err);

/* GM_OK if the answer still matters, else GM_DEADLINE, GM_CANCELLED or GM_DRAINING. For threads
 * that work on a suspended request, which nothing else watches. */
enum gm_status gm_request_still_wanted(const struct gm_request *request, struct gm_error *err);

/* Stops waiting for the body. If there was no error before, the reply says so, and why. */
void gm_request_give_up(struct gm_request *request, const char *why);

/* Call before the reply is sent, once: adds the headers that do not depend on what it says, and
 * settles the client's quota. */
void gm_request_finish(struct gm_request *request);

/* Frees all but the reply, and makes that a problem document of *error. Returns GM_READY. */
enum gm_progress gm_request_fail(struct gm_request *request, const struct gm_error *error);
/* Makes `text` the reply, and takes ownership; it does not count as the request's memory. NULL (no
 * memory) makes the reply an error. Returns GM_READY. */
enum gm_progress gm_request_reply(struct gm_request *request, const char *media_type, char *text);
/* Suspends the connection, if it is not, and queues run() for a worker, at this expected cost.
 * Returns GM_PENDING. */
enum gm_progress gm_request_to_worker(struct gm_request *request, void (*run)(struct gm_work *work),
                                      double cost_s);
/* Suspends the connection, unless it is suspended already. */
void gm_request_suspend(struct gm_request *request);
/* Hands a suspended request back to its event thread, in `state`. Must be the caller's last act. */
void gm_request_resume(struct gm_request *request, enum gm_request_state state);

/* Plans the request as far as its inputs are known. Once there are operands, also reserves the
 * memory. */
enum gm_status gm_request_plan(struct gm_request *request, enum gm_plan_operands operands,
                               struct gm_error *err);

/* Sets up the job that runs the plan. Set anything special (repeat, exclusive, report, another
 * callback) afterwards. gm_request_set_slot then sets its client and estimates its cost. */
void gm_request_set_job(struct gm_request *request, void (*done)(struct gm_job *job));
void gm_request_set_slot(struct gm_request *request);
/* Charges the client with the time that the job had of the device. */
void gm_request_charge_device(struct gm_request *request);
/* The same, and updates the cost model with the time that the job took. */
void gm_request_learn_cost(struct gm_request *request);
struct gm_request *gm_request_of_job(const struct gm_job *job);
/* Whether the client has disconnected: the `abandoned` of struct gm_job. */
bool gm_request_job_abandoned(const struct gm_job *job, bool running);

#endif
