/*
 * test_sim_tally.c - what a request costs: the textbook's patterns with their figures, then random
 * ones against the definition, counted by the plainest of loops; and the sums.
 */
#include "kernels/sim/watch/tally.h"
#include "model.h"
#include "tests/unit/operands.h"

#define ALL UINT32_MAX

/* Lane i is at begin + i * stride. */
static void lanes_apart(uint64_t address[GM_WARP], uint64_t begin, int64_t stride)
{
    for (unsigned lane = 0; lane < GM_WARP; lane++)
        address[lane] = begin + (uint64_t)(lane * stride);
}

static void test_sectors(void)
{
    static const struct {
        uint64_t begin;
        int64_t stride;
        uint32_t active;
        unsigned bytes, sectors, useful;
    } cases[] = {
        /* neighbours: as many sectors as 32 elements fill */
        {4096, 1, ALL, 1, 1, 32},
        {4096, 2, ALL, 2, 2, 64},
        {4096, 4, ALL, 4, 4, 128},
        {4096, 8, ALL, 8, 8, 256},
        {4096, 16, ALL, 16, 16, 512},
        /* one more where they begin within a sector; backwards is the same */
        {4100, 4, ALL, 4, 5, 128},
        {4096 + 124, -4, ALL, 4, 4, 128},
        /* columns: each lane a sector of its own */
        {4096, 32, ALL, 4, 32, 128},
        {4096, 4096, ALL, 1, 32, 32},
        {4096, 4000, ALL, 16, 32, 512},
        /* a broadcast */
        {4096, 0, ALL, 4, 1, 4},
        {4096, 0, ALL, 16, 1, 16},
        /* every other element; x of x, y, z; 16 bytes in two sectors never, as they are aligned */
        {4096, 8, ALL, 4, 8, 128},
        {4096, 12, ALL, 4, 12, 128},
        {4100, 12, ALL, 4, 12, 128},
        {4104, 12, ALL, 4, 12, 128},
        {4120, 12, ALL, 4, 13, 128}, /* the last points reach into one more */
        /* half a warp, one lane, none */
        {4096, 4, 0x0000FFFF, 4, 2, 64},
        {4096, 4, 0xFFFF0000, 4, 2, 64},
        {4096, 4, 0x55555555, 4, 4, 64},
        {4096, 4, 1u << 31, 4, 1, 4},
        {4096, 4, 0, 4, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t address[GM_WARP];
        unsigned sectors, useful;
        lanes_apart(address, cases[i].begin, cases[i].stride);
        gm_tally_sectors(address, cases[i].active, cases[i].bytes, &sectors, &useful);
        if (!CHECK_EQ(sectors, cases[i].sectors) | !CHECK_EQ(useful, cases[i].useful))
            fprintf(stderr, "  case %zu\n", i);
    }
}

static void test_wavefronts(void)
{
    static const struct {
        uint64_t begin;
        int64_t stride;
        uint32_t active;
        unsigned bytes, wavefronts, ideal;
    } cases[] = {
        /* rows of a tile: 128 bytes a pass */
        {0, 1, ALL, 1, 1, 1},
        {0, 2, ALL, 2, 1, 1},
        {0, 4, ALL, 4, 1, 1},
        {128, -4, ALL, 4, 1, 1},
        {124, -4, ALL, 4, 1, 1},
        {0, 8, ALL, 8, 2, 2},
        {0, 16, ALL, 16, 4, 4},
        /* columns of a tile of 32 x 32: 32 words of one bank; fewer of smaller elements */
        {0, 128, ALL, 4, 32, 1},
        {64, 64, ALL, 2, 16, 1},
        {32, 32, ALL, 1, 8, 1},
        {0, 256, ALL, 8, 32, 2},
        {0, 512, ALL, 16, 32, 4},
        /* of 32 x 33: a bank further each row */
        {0, 132, ALL, 4, 1, 1},
        {0, 66, ALL, 2, 1, 1},
        {0, 33, ALL, 1, 1, 1},
        {0, 264, ALL, 8, 2, 2},
        {0, 528, ALL, 16, 4, 4},
        /* strides of words: as often as the stride and 32 have factors in common */
        {0, 8, ALL, 4, 2, 1},
        {0, 12, ALL, 4, 1, 1},
        {0, 16, ALL, 4, 4, 1},
        {0, 24, ALL, 4, 2, 1},
        {0, 64, ALL, 4, 16, 1},
        /* one word for all is read once */
        {400, 0, ALL, 4, 1, 1},
        {401, 0, ALL, 1, 1, 1},
        {0, 128, 0x0000FFFF, 4, 16, 1},
        {0, 128, 0x00010001, 4, 2, 1},
        {0, 128, 0, 4, 0, 0},
        /* a vector for all lanes takes half of what different ones do, and never less */
        {0, 0, ALL, 8, 1, 1},
        {0, 0, ALL, 16, 2, 2},
        /* a half or a quarter of a warp alone */
        {0, 8, 0x0000FFFF, 8, 1, 1},
        {0, 16, 0x000000FF, 16, 1, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t address[GM_WARP];
        unsigned ideal;
        lanes_apart(address, 1 << 20 | cases[i].begin, cases[i].stride);
        if (!CHECK_EQ(gm_tally_wavefronts(address, cases[i].active, cases[i].bytes, true, &ideal),
                      cases[i].wavefronts) |
            !CHECK_EQ(ideal, cases[i].ideal))
            fprintf(stderr, "  case %zu\n", i);
    }
}

/* Lanes that share vectors of 16 bytes, as those of a product's thread tiles do: which lanes share
 * decides, and only then where the vectors lie. */
static void test_shared_vectors(void)
{
    static const struct {
        unsigned vector[8]; /* of lanes 0 to 7; the next eight have the next vectors, and so on */
        unsigned apart;     /* vectors from eight lanes to the next; 0: the same */
        unsigned stride;    /* bytes */
        unsigned wavefronts, ideal;
    } cases[] = {
        {{0, 1, 2, 3, 4, 5, 6, 7}, 8, 16, 4, 4},
        {{0, 1, 2, 3, 4, 5, 6, 7}, 0, 16, 4, 4}, /* shared, but not by neighbours */
        {{0, 0, 1, 1, 2, 2, 3, 3}, 4, 16, 2, 2}, /* lane ^ 1 */
        {{0, 1, 0, 1, 2, 3, 2, 3}, 4, 16, 2, 2}, /* lane ^ 2 */
        {{0, 0, 1, 1, 2, 3, 2, 3}, 4, 16, 4, 4}, /* one half so, the other so */
        {{0, 0, 0, 0, 0, 0, 0, 0},
         1,
         128,
         4,
         2}, /* two rows of a tile meet in one group of banks */
        {{0, 0, 1, 1, 2, 2, 3, 3}, 4, 128, 16, 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t address[GM_WARP];
        unsigned ideal;
        for (unsigned lane = 0; lane < GM_WARP; lane++)
            address[lane] = 4096 + (uint64_t)cases[i].stride *
                                       (cases[i].vector[lane % 8] + lane / 8 * cases[i].apart);
        if (!CHECK_EQ(gm_tally_wavefronts(address, ALL, 16, true, &ideal), cases[i].wavefronts) |
            !CHECK_EQ(ideal, cases[i].ideal))
            fprintf(stderr, "  case %zu\n", i);
    }
}

static void test_random(void)
{
    uint64_t random = check_seed();

    for (int round = 0; round < 20000; round++) {
        uint64_t address[GM_WARP];
        unsigned bytes = 1u << random_below(&random, 5), sectors, useful;
        uint64_t range = 1 + random_below(&random, round % 3 == 0 ? 20 : 600);
        uint32_t active = round % 2 == 0 ? ALL : (uint32_t)check_random(&random);
        for (unsigned lane = 0; lane < GM_WARP; lane++)
            address[lane] = (1 << 16) + bytes * random_below(&random, range);
        if (round % 5 == 0) /* neighbours agree, as they rarely do by chance */
            for (unsigned lane = 0; lane < GM_WARP; lane++)
                address[lane] = address[lane & ~(1u << round / 5 % 2)];
        bool load = round % 7 != 0;
        struct model_request request = {.kind = load ? GM_SHARED_LOAD : GM_SHARED_STORE,
                                        .bytes = bytes};
        for (unsigned lane = 0; lane < GM_WARP; lane++) {
            request.active[lane] = active >> lane & 1;
            request.address[lane] = address[lane];
        }
        gm_tally_sectors(address, active, bytes, &sectors, &useful);
        bool right = CHECK_EQ(sectors, model_distinct(&request, 0, GM_WARP, GM_SECTOR, -1));
        right &= CHECK_EQ(useful, model_distinct(&request, 0, GM_WARP, 1, -1));
        unsigned ideal, expected;
        unsigned wavefronts = gm_tally_wavefronts(address, active, bytes, load, &ideal);
        right &= CHECK_EQ(wavefronts, model_wavefronts(&request, &expected));
        right &= CHECK_EQ(ideal, expected);
        if (!right) {
            fprintf(stderr, "  round %d, %u bytes, active %#x\n", round, bytes, active);
            return;
        }
    }
}

static struct gm_tally_request request_of(uint32_t key, unsigned kind, uint32_t active,
                                          int64_t stride, double weight)
{
    struct gm_tally_request request = {.key = key,
                                       .kind = (uint8_t)kind,
                                       .bytes = 4,
                                       .memory = 1,
                                       .active = active,
                                       .weight = weight};

    lanes_apart(request.address, 4096, stride);
    return request;
}

static const struct gm_tally_site *site_of(const struct gm_tally *tally, uint32_t key)
{
    for (size_t i = 0; i < tally->count; i++)
        if (tally->site[i].key == key)
            return &tally->site[i];
    CHECK(false);
    return NULL;
}

static void check_sums(const struct gm_access_sums *sums, double requests, double lanes,
                       double useful, double moved, double units, double ideal)
{
    CHECK(sums->requests == requests && sums->lanes == lanes);
    CHECK(sums->bytes_useful == useful && sums->bytes_moved == moved);
    CHECK(sums->units == units && sums->units_ideal == ideal);
}

/* Loads of neighbouring words in succession pass as the vector loads that compilers make of them;
 * others, and stores, as they are. */
static void test_runs(void)
{
    static const struct {
        unsigned kind, loads;
        uint64_t begin;
        int64_t step, stride;
        double units, passes;
        bool other; /* by other instructions */
    } cases[] = {
        /* 4 floats of each lane, 16 bytes apart: 4 loads of 4 wavefronts, or one of 4 */
        {GM_SHARED_LOAD, 4, 4096, 4, 16, 16, 4, false},
        {GM_SHARED_LOAD, 2, 4096, 4, 8, 4, 2, false},
        /* the same 4 for all lanes: 4 loads of one wavefront, or one vector of 2 */
        {GM_SHARED_LOAD, 4, 4096, 4, 0, 4, 2, false},
        {GM_SHARED_LOAD, 8, 4096, 4, 0, 8, 4, false},
        /* that begin within a vector, or are 3, or not beside each other */
        {GM_SHARED_LOAD, 4, 4100, 4, 16, 16, 16, false},
        {GM_SHARED_LOAD, 3, 4096, 4, 16, 12, 12, false},
        {GM_SHARED_LOAD, 4, 4096, 128, 4, 4, 4, false},
        {GM_SHARED_STORE, 4, 4096, 4, 16, 16, 16, false},
        /* the last word first; each word by an instruction of its own */
        {GM_SHARED_LOAD, 4, 4096 + 12, -4, 16, 16, 4, false},
        {GM_SHARED_LOAD, 4, 4096 + 12, -4, 16, 16, 4, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_tally *one = calloc(1, sizeof(*one)), *all = calloc(1, sizeof(*all));
        struct gm_tally_request request = request_of(8, cases[i].kind, ALL, 0, 2);
        if (!CHECK(one && all))
            exit(1);
        for (unsigned load = 0; load < cases[i].loads; load++) {
            lanes_apart(request.address, cases[i].begin + (uint64_t)(load * cases[i].step),
                        cases[i].stride);
            request.key = cases[i].other && load > 0 ? 16 + load : 8;
            gm_tally_add(one, &request);
        }
        gm_tally_merge(all, one);
        double units = 0, passes = 0;
        for (size_t site = 0; site < all->count; site++) {
            units += all->site[site].sums.units;
            passes += all->site[site].sums.passes;
        }
        if (!CHECK(units == 2 * cases[i].units && passes == 2 * cases[i].passes))
            fprintf(stderr, "  case %zu: %g units, %g passes\n", i, units, passes);
        gm_tally_free(one);
        gm_tally_free(all);
        free(one);
        free(all);
    }
}

/* How many of the sectors of a load its block sees for the first time; *again: of these, those that
 * the block beside it loads too. */
static unsigned see(struct gm_tally_seen *seen, const uint64_t address[GM_WARP], uint32_t active,
                    unsigned *again)
{
    struct gm_tally_request request = {.active = active};

    memcpy(request.address, address, sizeof request.address);
    gm_tally_see(seen, &request);
    CHECK_EQ(request.beside, seen->beside ? request.first : 0);
    *again = request.again;
    return request.first;
}

/* A request to global memory passes as its banks and its lines need. */
static void test_first_touches(void)
{
    struct gm_tally_seen *seen = calloc(1, sizeof(*seen));
    struct gm_tally *tally = calloc(1, sizeof(*tally));
    uint64_t address[GM_WARP];
    unsigned again;

    if (!CHECK(seen && tally))
        exit(1);
    lanes_apart(address, 4096, 12); /* x of x, y, z; then y: the same 12 sectors */
    CHECK_EQ(see(seen, address, ALL, &again), 12);
    lanes_apart(address, 4100, 12);
    CHECK_EQ(see(seen, address, ALL, &again), 0);
    lanes_apart(address, 4096 + 384 - 32, 4);
    CHECK_EQ(see(seen, address, ALL, &again), 3);
    CHECK_EQ(again, 0);
    gm_tally_forget(seen, true); /* a block beside it: half of what it loads is the other's too */
    lanes_apart(address, 4096 + 384, 4);
    CHECK_EQ(see(seen, address, ALL, &again), 4);
    CHECK_EQ(again, 3);
    gm_tally_forget(seen, false);
    CHECK_EQ(see(seen, address, 0xFF, &again), 1);
    CHECK_EQ(again, 0);
    for (uint64_t i = 0; i < 4 * GM_TALLY_SEEN_MAX; i++) { /* more than it can hold */
        lanes_apart(address, 1 << 20 | i * 1024, 32);
        CHECK_EQ(see(seen, address, ALL, &again), 32);
    }
    gm_tally_forget(seen, true); /* of the one before the first sectors are gone: nothing is said */
    CHECK_EQ(see(seen, address, ALL, &again), 32);
    CHECK(again == 0 && !seen->beside);
    struct gm_tally_request column = request_of(8, GM_GLOBAL_STORE, ALL, 4096, 1);
    struct gm_tally_request points = request_of(16, GM_GLOBAL_LOAD, ALL, 36, 1);
    points.first = 7;
    gm_tally_add(tally, &column);
    gm_tally_add(tally, &points);
    CHECK(site_of(tally, 8)->sums.passes == 32); /* one bank */
    CHECK(site_of(tally, 16)->sums.passes == 3); /* 32 banks, and 9 lines, 4 at a time */
    CHECK(site_of(tally, 16)->sums.first == 7);
    gm_tally_free(tally);
    free(tally);
    free(seen);
}

static void test_sums(void)
{
    struct gm_tally *one = calloc(1, sizeof(*one)), *other = calloc(1, sizeof(*other));
    struct gm_tally_request column = request_of(8, GM_GLOBAL_STORE, ALL, 4096, 1);
    struct gm_tally_request half = request_of(8, GM_GLOBAL_STORE, 0xFFFF, 4, 3);
    struct gm_tally_request bank = request_of(16, GM_SHARED_LOAD, ALL, 128, 1);

    if (!CHECK(one && other))
        exit(1);
    /* The first is the example; one with fewer lanes is no better. */
    CHECK(gm_tally_add(one, &half) != NULL);
    CHECK(gm_tally_add(one, &column) != NULL);
    CHECK(gm_tally_add(one, &half) == NULL);
    CHECK(gm_tally_add(one, &bank) != NULL);
    CHECK_EQ(one->count, 2);
    /* 3 + 3 requests of 16 neighbours: 64 bytes, 2 sectors; one of 32 sectors where 4 would do */
    check_sums(&site_of(one, 8)->sums, 7, 6 * 16 + 32, 6 * 64 + 128, 6 * 64 + 1024, 6 * 2 + 32,
               6 * 2 + 4);
    /* 32 wavefronts of 128 bytes where one would do */
    check_sums(&site_of(one, 16)->sums, 1, 32, 128, 32 * 128, 32, 1);
    CHECK_EQ(site_of(one, 8)->example.active, ALL);
    CHECK_EQ(site_of(one, 8)->example.offset[1], 8192);

    CHECK(gm_tally_add(other, &column) != NULL);
    other->barriers = 2;
    other->steps = 5;
    gm_tally_merge(one, other);
    gm_tally_merge(one, other);
    check_sums(&site_of(one, 8)->sums, 9, 6 * 16 + 96, 6 * 64 + 384, 6 * 64 + 3072, 12 + 96,
               12 + 12);
    CHECK(one->barriers == 4 && one->steps == 10);

    /* What was not traced is taken to be like what was: as many lanes again double the sums. */
    CHECK(!gm_tally_scale(one));
    one->unlogged[gm_tally_place(one, 16)] = 32;
    CHECK(gm_tally_scale(one));
    check_sums(&site_of(one, 16)->sums, 2, 64, 256, 64 * 128, 64, 2);
    check_sums(&site_of(one, 8)->sums, 9, 6 * 16 + 96, 6 * 64 + 384, 6 * 64 + 3072, 12 + 96,
               12 + 12);

    gm_tally_reset(one);
    CHECK_EQ(one->count, 0);
    CHECK_EQ(one->places, 0);
    CHECK(one->barriers == 0 && !one->overflow);
    gm_tally_free(one);
    gm_tally_free(other);
    free(one);
    free(other);
}

/* Numbers of places, until there are no more; many sites, whichever order they come in. */
static void test_places(void)
{
    struct gm_tally *tally = calloc(1, sizeof(*tally));

    if (!CHECK(tally != NULL))
        exit(1);
    for (uint32_t i = 0; i < GM_TALLY_PLACES; i++)
        CHECK_EQ(gm_tally_place(tally, 1000 + 24 * i), i);
    for (uint32_t i = 0; i < GM_TALLY_PLACES; i++)
        CHECK_EQ(gm_tally_place(tally, 1000 + 24 * i), i);
    CHECK(!tally->overflow);
    CHECK_EQ(gm_tally_place(tally, 999), GM_TALLY_PLACES);
    CHECK(tally->overflow);
    for (uint32_t i = 0; i < 500; i++) {
        struct gm_tally_request request = request_of(7 + i * 31 % 100, GM_GLOBAL_LOAD, ALL, 4, 1);
        gm_tally_add(tally, &request);
    }
    CHECK_EQ(tally->count, 100);
    for (size_t i = 0; i < tally->count; i++)
        CHECK(tally->site[i].sums.requests == 5);
    gm_tally_free(tally);
    free(tally);
}

int main(void)
{
    test_sectors();
    test_wavefronts();
    test_shared_vectors();
    test_runs();
    test_first_touches();
    test_random();
    test_sums();
    test_places();
    return check_report();
}
