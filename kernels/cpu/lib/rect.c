/*
 * rect.c - transposes by tiles, in three steps.
 *
 *   1. read        whole lines, few of each of a few rows: each line is fetched once, and rows a
 *                  power of two apart do not evict each other
 *   2. transpose   blocks of 16 bytes by 16 / element rows in registers, by interleaving halves
 *   3. write       a small buffer collects the tile, which is stored in whole lines: these can
 *                  bypass the cache (stream.h)
 *
 * The tile of each element size is the best measured: about 256 bytes of a row of the result.
 */

#include "stream.h"

#define ELEMENT uint8_t
#define ELEMENT_BYTES 1
#define TILE_ROWS 256
#define TILE_COLS 64
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#include "rect.inc"

#define ELEMENT uint16_t
#define ELEMENT_BYTES 2
#define TILE_ROWS 128
#define TILE_COLS 64
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#include "rect.inc"

#define ELEMENT uint32_t
#define ELEMENT_BYTES 4
#define TILE_ROWS 64
#define TILE_COLS 32
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#include "rect.inc"

#define ELEMENT uint64_t
#define ELEMENT_BYTES 8
#define TILE_ROWS 64
#define TILE_COLS 16
#define LOW 0, 2
#define HIGH 1, 3
#include "rect.inc"

/* An element is a whole vector: nothing to interleave; only the tile matters. */
typedef struct {
    uint64_t half[2];
} element16;

#define ELEMENT element16
#define ELEMENT_BYTES 16
#define TILE_ROWS 32
#define TILE_COLS 8
#include "rect.inc"

void gm_rect_transpose(size_t element_bytes, const void *src, uint64_t src_ld, void *dst,
                       uint64_t dst_ld, uint64_t rows, uint64_t cols, bool stream)
{
    switch (element_bytes) {
    case 1:
        rect1(src, src_ld, dst, dst_ld, rows, cols, stream);
        break;
    case 2:
        rect2(src, src_ld, dst, dst_ld, rows, cols, stream);
        break;
    case 4:
        rect4(src, src_ld, dst, dst_ld, rows, cols, stream);
        break;
    case 8:
        rect8(src, src_ld, dst, dst_ld, rows, cols, stream);
        break;
    default:
        rect16(src, src_ld, dst, dst_ld, rows, cols, stream);
        break;
    }
}
