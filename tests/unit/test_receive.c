/* Bodies that are read to their places, as the HTTP library sees it: it asks for pieces, gets no
 * more than is there, and misses no event. The request is made up; the sockets are real. */
#include "server/http/connections.h"
#include "server/http/internal.h"
#include "server/limits.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <sys/socket.h>

#define PIECE 100u /* what the library asks for at a time */
#define BODY 1000u

/* The request's side: a body of two operands, and what was pushed of it. */
static char operand[2][BODY], body[BODY + PIECE], library[PIECE];
static size_t size[2], pushed, in_place;
static bool wants = true;
static unsigned events;

unsigned gm_wait_events(void)
{
    return events;
}

unsigned gm_request_places(const struct gm_request *r, struct iovec place[GM_OPERANDS_MAX])
{
    size_t first = pushed < size[0] ? pushed : size[0], second = pushed - first;

    (void)r;
    place[0] = (struct iovec){operand[0] + first, size[0] - first};
    place[1] = (struct iovec){operand[1] + second, size[1] - second};
    return wants ? 2 : 0;
}

void gm_request_push(struct gm_request *r, const void *bytes, size_t len)
{
    (void)r;
    for (size_t i = 0; bytes && i < len; i++) {
        size_t at = pushed + i;
        char *to = at < size[0] ? operand[0] + at : operand[1] + (at - size[0]);
        *to = ((const char *)bytes)[i];
    }
    in_place += bytes ? 0 : len;
    pushed += len;
}

static int client;
static struct gm_connection connection;

static void begin(size_t first, size_t second)
{
    int pair[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)(i * 7 + i / 256);
    memset(operand, 0, sizeof operand);
    connection = (struct gm_connection){.socket = pair[0], .request = (struct gm_request *)body};
    client = pair[1];
    size[0] = first;
    size[1] = second;
    pushed = in_place = 0;
    gm_receive_open(&connection);
    gm_receive_reset(&connection);
}

static void end(void)
{
    gm_receive_close(&connection);
    close(connection.socket);
    close(client);
}

static void send_bytes(size_t from, size_t len)
{
    CHECK_EQ(send(client, body + from, len, 0), len);
}

/* The library reads once, and hands on what it got, but for `others` bytes of the next request. */
static ssize_t read_piece(size_t others)
{
    ssize_t got = recv(connection.socket, library, PIECE, 0);

    if (got > (ssize_t)others)
        gm_receive_piece(&connection, connection.request, library, (size_t)got - others);
    return got;
}

static void check_body(void)
{
    CHECK_EQ(pushed, size[0] + size[1]);
    CHECK(memcmp(operand[0], body, size[0]) == 0);
    CHECK(memcmp(operand[1], body + size[0], size[1]) == 0);
}

/* The first piece comes through the library, for it has the head's rest; then all is in place. */
static void test_pieces(void)
{
    begin(450, 500);
    send_bytes(0, 950);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(read_piece(0), PIECE);
    CHECK_EQ(read_piece(0), 50);
    CHECK_EQ(in_place, 850);
    check_body();
    CHECK_EQ(read_piece(0), -1);
    CHECK_EQ(errno, EAGAIN);
    end();
}

/* A body that pauses anywhere: a short piece each time, and none is lost. */
static void test_pauses(void)
{
    for (size_t step = 1; step < 400; step += 13) {
        begin(450, 500);
        for (size_t at = 0; at < 950; at += step) {
            send_bytes(at, step < 950 - at ? step : 950 - at);
            while (read_piece(0) == PIECE)
                ;
        }
        check_body();
        end();
    }
}

/* The next request comes behind the body: the library gets it from its first byte on. */
static void test_next_request(void)
{
    begin(450, 500);
    send_bytes(0, 990);
    for (int i = 0; i < 9; i++)
        CHECK_EQ(read_piece(0), PIECE);
    CHECK_EQ(read_piece(40), 90);
    check_body();
    CHECK(memcmp(library + 50, body + 950, 40) == 0);
    end();
}

/* The same where the last piece is a full one: the byte that was read with it is kept, although its
 * request ends before the library asks again. */
static void test_next_request_behind_whole_pieces(void)
{
    begin(450, 450);
    send_bytes(0, 940);
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(atomic_load(&connection.placed), i > 1);
        CHECK_EQ(read_piece(0), PIECE);
    }
    check_body();
    CHECK(!atomic_load(&connection.placed));
    gm_receive_reset(&connection);
    CHECK_EQ(recv(connection.socket, library, PIECE, 0), 40);
    CHECK(memcmp(library, body + 900, 40) == 0);
    end();
}

/* What comes while pieces are handed on, with an event of its own, is read with the last of them: a
 * short piece says that the socket is empty. */
static void test_event_between(void)
{
    begin(450, 500);
    send_bytes(0, 330);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(read_piece(0), PIECE);
    send_bytes(330, 50);
    events++;
    CHECK_EQ(read_piece(0), 80);
    send_bytes(380, 570);
    while (read_piece(0) == PIECE)
        ;
    check_body();
    end();
}

/* Without an event nobody asks again, which would cost a call for each body. */
static void test_no_event_between(void)
{
    begin(450, 500);
    send_bytes(0, 330);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(read_piece(0), PIECE);
    send_bytes(330, 50);
    CHECK_EQ(read_piece(0), 30);
    CHECK_EQ(read_piece(0), 50);
    end();
}

/* Where the library keeps bytes of the body, what follows them is read behind them. */
static void test_kept_bytes(void)
{
    begin(450, 500);
    send_bytes(0, 950);
    CHECK_EQ(recv(connection.socket, library, 40, 0), 40);
    CHECK_EQ(recv(connection.socket, library + 40, 60, 0), 60);
    gm_receive_piece(&connection, connection.request, library, 100);
    while (read_piece(0) == PIECE)
        ;
    check_body();
    CHECK_EQ(in_place, 850);
    end();
}

/* A request that must see its bytes, or whose rest is short, gets them from the library. */
static void test_not_in_place(void)
{
    begin(450, 500);
    wants = false;
    send_bytes(0, 950);
    while (read_piece(0) == PIECE)
        ;
    wants = true;
    check_body();
    CHECK_EQ(in_place, 0);
    end();

    begin(150, 50);
    send_bytes(0, 200);
    while (read_piece(0) == PIECE)
        ;
    check_body();
    CHECK_EQ(in_place, 0);
    end();
}

/* The client leaves in the middle: the end of the stream comes after what it sent. */
static void test_leaves(void)
{
    begin(450, 500);
    send_bytes(0, 400);
    shutdown(client, SHUT_WR);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(read_piece(0), PIECE);
    CHECK_EQ(read_piece(0), 0);
    CHECK_EQ(pushed, 400);
    end();
}

/* Looks at a socket, and sockets that nobody watches, are libc's business. */
static void test_others(void)
{
    begin(450, 500);
    send_bytes(0, 300);
    CHECK_EQ(read_piece(0), PIECE);
    CHECK_EQ(recv(connection.socket, library, 1, MSG_PEEK | MSG_DONTWAIT), 1);
    CHECK_EQ(library[0], body[100]);
    gm_receive_close(&connection);
    CHECK_EQ(recv(connection.socket, library, PIECE, 0), PIECE);
    CHECK(memcmp(library, body + 100, PIECE) == 0);
    CHECK_EQ(pushed, PIECE);
    end();
    CHECK_EQ(recv(-1, library, PIECE, 0), -1);
    CHECK_EQ(errno, EBADF);
}

int main(void)
{
    test_pieces();
    test_pauses();
    test_next_request();
    test_next_request_behind_whole_pieces();
    test_event_between();
    test_no_event_between();
    test_kept_bytes();
    test_not_in_place();
    test_leaves();
    test_others();
    return check_report();
}
