// The MAC loop for AVX-512 VNNI: vpdpbusd adds four products of an unsigned and a signed byte to an int32, exactly.
// Signed bytes are made unsigned by adding 128; the bias takes the 128 * sum of the weights off again. The rest is AVX2.
//
// This file is compiled with AVX-512 flags: it must contain no inline function that another file could share.
#include "bodies.h"

#if defined(__x86_64__)

#if defined(RASNA_EMULATE_AVX512)
#include "emulated_avx512.h"  // of tests/sim: the few intrinsics below in plain C++, for processors that lack them
#else
#include <immintrin.h>
#endif
#include <string.h>

namespace rasna {
namespace {

// 64 lanes; what is not asked for is 0.
template <Shape SHAPE, int GROUPS>
inline __m512i load_chunk(const uint8_t *const *bases, int address) {
    constexpr int BYTES = SHAPE == ROW_4 ? 32 : SHAPE == ROW_2 ? 16 : 8;
    constexpr int LANES = SHAPE == SINGLE ? 8 : GROUPS * GROUP_LANES;
    alignas(64) uint8_t bytes[CHUNK_LANES];
    if (SHAPE == ROW_4) {
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bases[0] + address));
        if (GROUPS == 1) return _mm512_zextsi256_si512(low);
        return _mm512_inserti64x4(_mm512_zextsi256_si512(low),
                                  _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bases[GROUPS - 1] + address)), 1);
    }
    if (LANES < CHUNK_LANES) memset(bytes, 0, sizeof bytes);
    for (int i = 0; i < LANES / BYTES; i++) memcpy(bytes + i * BYTES, bases[i] + address, BYTES);
    return _mm512_load_si512(bytes);
}

template <Shape SHAPE, int GROUPS, bool SIGNED, bool MASKED>
inline void mac_quads(const uint8_t *const *bases, const Quad *quads, int num_quads, const uint8_t *masks,
                      __m512i acc[4]) {
    for (int q = 0; q < num_quads; q++) {
        int32_t weights;
        memcpy(&weights, quads[q].weight, 4);
        const __m512i w = _mm512_set1_epi32(weights);
        __m512i x[4];
        for (int k = 0; k < 4; k++) {
            x[k] = load_chunk<SHAPE, GROUPS>(bases, quads[q].address[k]);
            if (MASKED)
                x[k] = _mm512_and_si512(
                    x[k], _mm512_set1_epi64(static_cast<long long>(LANE_BYTES[masks[4 * q + k]])));
            if (SIGNED) x[k] = _mm512_xor_si512(x[k], _mm512_set1_epi8(static_cast<char>(0x80)));
        }
        const __m512i ab_lo = _mm512_unpacklo_epi8(x[0], x[1]), ab_hi = _mm512_unpackhi_epi8(x[0], x[1]);
        const __m512i cd_lo = _mm512_unpacklo_epi8(x[2], x[3]), cd_hi = _mm512_unpackhi_epi8(x[2], x[3]);
        acc[0] = _mm512_dpbusd_epi32(acc[0], _mm512_unpacklo_epi16(ab_lo, cd_lo), w);
        acc[1] = _mm512_dpbusd_epi32(acc[1], _mm512_unpackhi_epi16(ab_lo, cd_lo), w);
        acc[2] = _mm512_dpbusd_epi32(acc[2], _mm512_unpacklo_epi16(ab_hi, cd_hi), w);
        acc[3] = _mm512_dpbusd_epi32(acc[3], _mm512_unpackhi_epi16(ab_hi, cd_hi), w);
    }
}

// acc[i] holds the pixels 16*l + 4*i … 16*l + 4*i + 3 in its 128-bit lane l.
template <int LANES>
inline void store_lanes(const __m512i acc[4], int32_t *out) {
    int32_t lanes[4][16];
    for (int i = 0; i < 4; i++) _mm512_storeu_si512(lanes[i], acc[i]);
    for (int p = 0; p < LANES; p += 4) memcpy(out + p, &lanes[p / 4 % 4][p / 16 * 4], 4 * sizeof *out);
}

template <Shape SHAPE, int GROUPS>
void mac(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    const uint32_t start = static_cast<uint32_t>(bias) - 128u * static_cast<uint32_t>(list.signed_weights);
    __m512i acc[4];
    for (int i = 0; i < 4; i++) acc[i] = _mm512_set1_epi32(static_cast<int32_t>(start));
    const Quad *quads = list.quads;
    mac_quads<SHAPE, GROUPS, false, false>(bases, quads, list.num_unsigned, nullptr, acc);
    quads += list.num_unsigned;
    mac_quads<SHAPE, GROUPS, true, false>(bases, quads, list.num_signed, nullptr, acc);
    quads += list.num_signed;
    mac_quads<SHAPE, GROUPS, false, true>(bases, quads, list.num_masked_unsigned, list.masks, acc);
    quads += list.num_masked_unsigned;
    const uint8_t *masks = list.masks + 4 * list.num_masked_unsigned;
    mac_quads<SHAPE, GROUPS, true, true>(bases, quads, list.num_masked_signed, masks, acc);
    store_lanes<SHAPE == SINGLE ? 8 : GROUPS * GROUP_LANES>(acc, out);
}

template <Shape SHAPE, int GROUPS>
void max(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip, uint8_t *out) {
    BODY_AVX2.max[SHAPE][GROUPS - 1](bases, taps, num_taps, flip, out);
}

void requantize(const int32_t *acc, int num_lanes, const Requant &by, uint8_t *out) {
    BODY_AVX2.requantize(acc, num_lanes, by, out);
}

bool is_supported() {
#if defined(RASNA_EMULATE_AVX512)
    return __builtin_cpu_supports("avx2");
#else
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2");
#endif
}

}  // namespace

const Body BODY_VNNI = {
    "vnni",
    is_supported,
    false,
    {{mac<ROW_4, 1>, mac<ROW_4, 2>}, {mac<ROW_2, 1>, mac<ROW_2, 2>}, {mac<ROW_1, 1>, mac<ROW_1, 2>}, {mac<SINGLE, 1>}},
    {{max<ROW_4, 1>, max<ROW_4, 2>}, {max<ROW_2, 1>, max<ROW_2, 2>}, {max<ROW_1, 1>, max<ROW_1, 2>}, {max<SINGLE, 1>}},
    requantize,
};

}  // namespace rasna

#endif
