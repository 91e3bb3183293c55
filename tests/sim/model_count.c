/* model_count.c - sectors and wavefronts, by their definition. */
#include "model.h"

unsigned model_distinct(const struct model_request *request, unsigned from, unsigned to,
                        unsigned unit, int bank)
{
    enum { PLACES = 2 * GM_WARP * 16 }; /* twice as many as there are bytes at most */
    uint64_t seen[PLACES];              /* each where its address says, or in the next free place */
    bool is_used[PLACES] = {false};
    const unsigned shift = (unsigned)__builtin_ctz(unit);
    unsigned count = 0;

    for (unsigned lane = from; lane < to; lane++) {
        for (unsigned byte = 0; byte < request->bytes && request->active[lane]; byte++) {
            uint64_t at = (request->address[lane] + byte) >> shift;
            unsigned i = at % PLACES;
            if (bank >= 0 && at % GM_BANKS != (uint64_t)bank)
                continue;
            while (is_used[i] && seen[i] != at)
                i = (i + 1) % PLACES;
            count += !is_used[i];
            seen[i] = at;
            is_used[i] = true;
        }
    }
    return count;
}

/* Whether every two lanes whose numbers differ in `bit` have one address, or only one is active. */
static bool pairs_agree(const struct model_request *request, unsigned bit)
{
    bool agree = true;

    for (unsigned lane = 0; lane < GM_WARP; lane++)
        agree &= !request->active[lane] || !request->active[lane ^ bit] ||
                 request->address[lane] == request->address[lane ^ bit];
    return agree;
}

/* 32 lanes go together, or as many as 128 bytes can hold of wider elements, or of a load twice
 * those if neighbours agree; a bank gives one word at a time. */
unsigned model_wavefronts(const struct model_request *request, unsigned *ideal)
{
    unsigned together = request->bytes <= 4 ? 32 : 128 / request->bytes, total = 0;

    if (request->bytes > 4 && request->kind == GM_SHARED_LOAD &&
        (pairs_agree(request, 1) || pairs_agree(request, 2)))
        together *= 2;
    *ideal = 0;
    for (unsigned first = 0; first < GM_WARP; first += together) {
        unsigned most = 0;
        for (int bank = 0; bank < (int)GM_BANKS; bank++) {
            unsigned words = model_distinct(request, first, first + together, 4, bank);
            most = words > most ? words : most;
        }
        total += most;
        *ideal += most > 0;
    }
    return total;
}

void model_add(struct gm_access_totals *totals, const struct model_request *request)
{
    struct gm_access_sums *sums = &totals->kind[request->kind];
    bool shared = gm_access_is_shared(request->kind);
    unsigned unit = shared ? 128 : GM_SECTOR, lanes = 0;

    for (unsigned lane = 0; lane < GM_WARP; lane++)
        lanes += request->active[lane];
    if (lanes == 0)
        return;
    unsigned useful = model_distinct(request, 0, GM_WARP, 1, -1);
    unsigned ideal = (useful + unit - 1) / unit;
    unsigned units = shared ? model_wavefronts(request, &ideal)
                            : model_distinct(request, 0, GM_WARP, GM_SECTOR, -1);
    sums->requests += 1;
    sums->lanes += lanes;
    sums->bytes_useful += useful;
    sums->units += units;
    sums->bytes_moved += (double)units * unit;
    sums->units_ideal += ideal;
}
