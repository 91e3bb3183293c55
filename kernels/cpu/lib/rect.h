/*
 * rect.h - transposes a rectangle of elements of any size.
 *
 * For the blocked transpose and for column-major stacks.
 */
#ifndef GM_KERNELS_CPU_LIB_RECT_H
#define GM_KERNELS_CPU_LIB_RECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * dst[j * dst_ld + i] = src[i * src_ld + j] for i < rows, j < cols: elements of 1, 2, 4, 8 or 16
 * bytes. stream: with stores that bypass the cache; the caller ends them (gm_stream_end).
 */
void gm_rect_transpose(size_t element_bytes, const void *src, uint64_t src_ld, void *dst,
                       uint64_t dst_ld, uint64_t rows, uint64_t cols, bool stream);

#endif
