/*
 * Bodies of multipart/form-data: parts in four forms, in pieces of every size, cut off at every
 * byte, without memory at every place.
 */
#include "tests/unit/multipart_message.h"

#include <string.h>

/* What most tests send: 2 * a b^T - c = (2, 4; 8, 7) in four formats, parameters in between. */
static const double product[4] = {2, 4, 8, 7};

static void make_product(struct message *m)
{
    static const double a[4] = {1, 2, 3, 4}, b[4] = {1, 1, 1, 1.5};

    m->len = 0;
    message_add_text(m, "alpha", "2");
    message_add_text(m, "c", "[[4, 4],\r\n\r\n\r [6,\r\n 11]]");
    message_add_npy(m, "b", "<f8", b, sizeof b);
    message_add_text(m, "shape_a", "2x2");
    message_add_text(m, "dtype", "f64");
    message_add_part(m, "a", RAW, a, sizeof a);
    message_add_text(m, "beta", "-1");
    message_add_text(m, "transb", "true");
    message_add_end(m);
}

static void check_product(const struct exchange *x)
{
    const struct gm_reply *reply = &x->request->reply;

    bench_expect(x, 200, NULL);
    if (CHECK_EQ(reply->body_len, sizeof product))
        CHECK(memcmp(reply->body, product, sizeof product) == 0);
}

static void test_pieces(void)
{
    static struct message m;
    struct ask ask = {MATMUL, .type = MULTIPART, .accept = RAW};
    struct exchange x;

    make_product(&m);
    for (int chunked = 0; chunked < 2; chunked++) {
        ask.chunked = chunked;
        for (size_t piece = 1; piece <= m.len; piece += piece < 200 ? 1 : 61) {
            bench_serve(&x, &ask, m.text, m.len, piece);
            check_product(&x);
            bench_end(&x);
        }
        for (size_t cut = 1; cut < m.len; cut++) {
            bench_begin(&x, &ask, m.len);
            bench_push(&x, m.text, cut, cut);
            bench_push(&x, m.text + cut, m.len - cut, m.len);
            if (!bench_advance(&x))
                bench_finish(&x);
            check_product(&x);
            bench_end(&x);
        }
    }
    ask.accept = NULL; /* then it is NPY */
    bench_serve(&x, &ask, m.text, m.len, m.len);
    bench_expect(&x, 200, NULL);
    CHECK_STR(x.request->reply.media_type, NPY);
    bench_end(&x);
}

/* A client that goes, at every byte; one whose body ends there, which the daemon can answer. */
static void test_cut_off(void)
{
    static struct message m;
    const struct ask ask = {MATMUL, .type = MULTIPART, .chunked = true};
    struct exchange x;

    make_product(&m);
    for (size_t len = 0; len < m.len - 2; len++) {
        bench_begin(&x, &ask, m.len);
        bench_push(&x, m.text, len, 100);
        bench_end(&x);
        bench_check_all_returned();
        bench_serve(&x, &ask, m.text, len, 100);
        bench_expect(&x, len < 7 ? x.request->reply.http : 400, NULL);
        CHECK(x.request->reply.http == 400 || x.request->reply.http == 422);
        bench_end(&x);
        bench_check_all_returned();
    }
}

/* Without each buffer in turn. */
static void test_no_memory(void)
{
    static struct message m;
    const struct ask ask = {MATMUL, .type = MULTIPART, .accept = RAW};
    struct exchange x;
    int failures = 0;

    make_product(&m);
    for (bool done = false; !done;) {
        atomic_store(&faulty_plan.buffer_at,
                     atomic_load(&faulty_plan.buffers) + 1 + (unsigned)failures);
        bench_serve(&x, &ask, m.text, m.len, 50);
        done = x.request->reply.http == 200;
        if (done)
            check_product(&x);
        else if (!bench_expect(&x, 503, "memory_full"))
            done = true;
        else
            failures++;
        bench_end(&x);
        bench_check_all_returned();
    }
    atomic_store(&faulty_plan.buffer_at, 0);
    CHECK(failures >= 4); /* a, b, c and the result */
}

/* The length is reserved once; its parts find their room in that. */
static void test_memory_is_counted_once(void)
{
    static struct message m;
    static const float zeros[5000];
    const struct ask ask = {
        .path = "/v1/add", .type = MULTIPART, .query = "shape_a=50x100&shape_b=50x100"};
    struct exchange x;

    m.len = 0;
    message_add_part(&m, "b", RAW, zeros, sizeof zeros);
    message_add_part(&m, "a", RAW, zeros, sizeof zeros);
    message_add_end(&m);
    bench_begin(&x, &ask, m.len);
    const struct gm_reservation *reservation = &x.request->reservation;
    CHECK_EQ(reservation->reserved - reservation->spare, m.len);
    bench_push(&x, m.text, m.len - 20, 1000);
    CHECK(x.request->parsed.present[0] && x.request->parsed.present[1]);
    CHECK(x.request->reservation.used >= 2 * sizeof zeros);
    CHECK(reservation->reserved - reservation->spare >= m.len &&
          reservation->reserved - reservation->spare <= m.len + m.len / 8);
    bench_end(&x);
    bench_check_all_returned();
}

int main(void)
{
    bench_open(64 << 20, 1);
    test_pieces();
    test_cut_off();
    test_no_memory();
    test_memory_is_counted_once();
    bench_close();
    return check_report();
}
