/*
 * stream.h - copies, and transposes, with stores that bypass the cache.
 *
 * A line that is written whole need not be read first, which saves a third of a copy's traffic. A
 * result larger than the cache would be evicted anyway before it is read.
 */
#ifndef GM_KERNELS_CPU_LIB_STREAM_H
#define GM_KERNELS_CPU_LIB_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The smallest result that is streamed. Measured: a smaller one is still in the cache when it is
 * read next. */
#define GM_STREAM_MIN ((uint64_t)1 << 20)

/* Like memcpy, with whole lines that bypass the cache if the processor has such stores. */
static inline void gm_stream(void *dst, const void *src, uint64_t bytes)
{
#ifdef __SSE2__
    char *to = dst;
    const char *from = src;
    uint64_t head = -(uintptr_t)to & 63;

    if (head > bytes)
        head = bytes;
    memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
        __m128i x0 = _mm_loadu_si128((const __m128i *)(const void *)from);
        __m128i x1 = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
        __m128i x2 = _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
        __m128i x3 = _mm_loadu_si128((const __m128i *)(const void *)(from + 48));
        _mm_stream_si128((__m128i *)(void *)to, x0);
        _mm_stream_si128((__m128i *)(void *)(to + 16), x1);
        _mm_stream_si128((__m128i *)(void *)(to + 32), x2);
        _mm_stream_si128((__m128i *)(void *)(to + 48), x3);
    }
    memcpy(to, from, bytes);
#else
    memcpy(dst, src, bytes);
#endif
}

/* Call before another thread may read what was streamed. */
static inline void gm_stream_end(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* Bytes: up to here a rectangle is in the cache as it is, and needs no buffer and no stream. */
#define GM_RECT_SMALL 1024u

/*
 * rect.c: transposes a rectangle of elements of any size.
 *
 * dst[j * dst_ld + i] = src[i * src_ld + j] for i < rows, j < cols: elements of 1, 2, 4, 8 or 16
 * bytes. stream: with stores that bypass the cache; the caller ends them (gm_stream_end).
 */
void gm_rect_transpose(size_t element_bytes, const void *src, uint64_t src_ld, void *dst,
                       uint64_t dst_ld, uint64_t rows, uint64_t cols, bool stream);

#endif
