// The tap loops for AVX-512 VNNI: vpdpbusd adds four products of an unsigned and a signed byte to an int32, exactly.
// Signed bytes are made unsigned by adding 128; the sums begin with the 128 * sum of the weights less. The rest is AVX2.
//
// This file is compiled with AVX-512 flags: it must contain no inline function that another file could share.
#include "bodies.h"

#if defined(__x86_64__)

#include "body_x86.h"
#include "processor.h"
#if defined(RASNA_EMULATE_AVX512)
#include "emulated_avx512.h"  // of tests/sim: the few intrinsics below in plain C++, for processors that lack them
#endif

namespace rasna {
namespace {

struct VnniDot {
    using Weights = __m256i;

    template <bool SIGNED>
    static Weights weights(const Quad &quad) {
        int32_t weights;
        memcpy(&weights, quad.weight, 4);
        return _mm256_set1_epi32(weights);
    }

    template <bool SIGNED>
    static __m256i add(__m256i acc, __m256i bytes, const Weights &w) {
        if (SIGNED) bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(0x80)));
        return _mm256_dpbusd_epi32(acc, bytes, w);
    }

    template <bool SIGNED>
    static __m128i add(__m128i acc, __m128i bytes, const Weights &w) {
        if (SIGNED) bytes = _mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(0x80)));
        return _mm_dpbusd_epi32(acc, bytes, _mm256_castsi256_si128(w));
    }

    static int32_t start(int32_t bias, const MacList &list) {
        return static_cast<int32_t>(static_cast<uint32_t>(bias) - 128u * static_cast<uint32_t>(list.signed_weights));
    }
};

template <Shape SHAPE, int GROUPS>
void max(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip, uint8_t *out) {
    BODY_AVX2.max[SHAPE][GROUPS - 1](bases, taps, num_taps, flip, out);
}

void requantize(const int32_t *acc, int num_lanes, const Requant &by, uint8_t *out) {
    BODY_AVX2.requantize(acc, num_lanes, by, out);
}

bool is_supported() {
#if defined(RASNA_EMULATE_AVX512)
    return has_avx2(read_processor());
#else
    return has_avx512_vnni(read_processor());
#endif
}

}  // namespace

const Body BODY_VNNI = {
    "vnni",
    is_supported,
    false,
    {{mac<VnniDot, ROW_4, 1>, mac<VnniDot, ROW_4, 2>},
     {mac<VnniDot, ROW_2, 1>, mac<VnniDot, ROW_2, 2>},
     {mac<VnniDot, ROW_1, 1>, mac<VnniDot, ROW_1, 2>},
     {mac_single<VnniDot>}},
    {{max<ROW_4, 1>, max<ROW_4, 2>}, {max<ROW_2, 1>, max<ROW_2, 2>}, {max<ROW_1, 1>, max<ROW_1, 2>}, {max<SINGLE, 1>}},
    requantize,
};

}  // namespace rasna

#endif
