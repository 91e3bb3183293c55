/*
 * sources.h - the text of the kernels' files, so that a report can show a line where the sources
 * are not.
 */
#ifndef GM_KERNELS_SIM_WATCH_SOURCES_H
#define GM_KERNELS_SIM_WATCH_SOURCES_H

#include <stddef.h>

struct gm_sim_source {
    const char *file; /* "kernels/cuda/copy/direct.cu" */
    const char *begin, *end;
};

/* Made when the program is built. */
extern const struct gm_sim_source gm_sim_sources[];
extern const size_t gm_sim_source_count;

#endif
