// Every header of proto/ compiled as C++, and one call through each that has functions.
#include "proto/codec.h"
#include "proto/matrix.h"
#include "proto/multipart/multipart.h"
#include "proto/number/half.h"
#include "proto/number/number.h"
#include "proto/status.h"

#include <cstdio>
#include <cstring>

int main()
{
    uint16_t half = 0;
    bool good = gm_status_http(GM_BAD_SHAPE) == 422 && gm_dtype_size(GM_C128) == 16 &&
                gm_codec_at(0) != nullptr && gm_f16_of_f32(1.0f) == 0x3C00 &&
                gm_number_reader_of(GM_F16)("1.5,\0\0\0\0\0\0\0\0", &half) != nullptr &&
                half == 0x3E00 && gm_shortest_f32(0.5f).digits % 5 == 0 &&
                gm_multipart_is(GM_MULTIPART_TYPE);
    std::puts(good ? "ok" : "failed");
    return good ? 0 : 1;
}
