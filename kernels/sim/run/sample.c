#include "job.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The picks in one dimension: its ends, and up to `inner` indices that stand for those in
 * between. */
struct picks {
    unsigned count, index[34];
    double weight[34];
};

static struct picks pick_indices(unsigned size, unsigned inner, bool first_too)
{
    struct picks picks = {0};
    unsigned begin = first_too ? 1 : 0, between = size > begin + 1 ? size - begin - 1 : 0;

    if (size <= inner + 1 + begin) {
        for (unsigned i = 0; i < size; i++) {
            picks.index[picks.count] = i;
            picks.weight[picks.count++] = 1;
        }
        return picks;
    }
    if (first_too) {
        picks.index[picks.count] = 0;
        picks.weight[picks.count++] = 1;
    }
    for (unsigned i = 0; i < inner; i++) {
        /* Spread by the golden ratio, which resonates with no alignment. */
        double at = fmod(0.5 + i * 0.6180339887498949, 1.0);
        picks.index[picks.count] = begin + (unsigned)(at * between);
        picks.weight[picks.count++] = (double)between / inner;
    }
    picks.index[picks.count] = size - 1;
    picks.weight[picks.count++] = 1;
    return picks;
}

void gm_sim_pick_warps(unsigned warps, bool few, double ret[])
{
    for (unsigned i = 0; i < warps; i++)
        ret[i] = few ? 0 : 1;
    if (!few)
        return;
    ret[0] = 1;
    if (warps > 1)
        ret[warps / 2] = warps - 1;
}

unsigned gm_sim_pick_blocks(struct gm_sim_dim grid, uint64_t most,
                            struct gm_sim_pick ret[GM_SIM_PICKS_MAX])
{
    static const struct {
        unsigned inner;
        bool first_too;
    } ways[] = {{32, true}, {16, true}, {8, true}, {4, true}, {2, true}, {1, true}, {1, false}};
    const size_t last = sizeof(ways) / sizeof(ways[0]) - 1;
    struct picks x, y, z;
    unsigned count = 0;

    for (size_t way = 0; way <= last; way++) {
        unsigned inner = ways[way].inner;
        x = pick_indices(grid.x, inner, ways[way].first_too);
        y = pick_indices(grid.y, inner, ways[way].first_too);
        z = pick_indices(grid.z, inner < 4 ? inner : 4, ways[way].first_too);
        if ((uint64_t)x.count * y.count * z.count <=
            (most < GM_SIM_PICKS_MAX ? most : GM_SIM_PICKS_MAX))
            break;
    }
    for (unsigned k = 0; k < z.count; k++)
        for (unsigned j = 0; j < y.count; j++)
            for (unsigned i = 0; i < x.count; i++)
                ret[count++] = (struct gm_sim_pick){{x.index[i], y.index[j], z.index[k]},
                                                    x.weight[i] * y.weight[j] * z.weight[k]};
    return count;
}
