// The tap loops for AVX2.
//
// Four taps at a time: their bytes are interleaved by pixel, pmaddubsw adds two products in int16 (exact, because the
// list is arranged in pairs, see bodies.h), pmaddwd adds the two pairs in int32. pmaddubsw needs one unsigned operand:
// for unsigned bytes that is the byte, for signed bytes the magnitude of the weight, and pmaddwd applies the sign.
//
// This file is compiled with -mavx2: it must contain no inline function that another file could share.
#include "bodies.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

namespace rasna {
namespace {

template <Shape SHAPE>
inline __m256i load_group(const uint8_t *const *bases, int address) {
    if (SHAPE == ROW_4) return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bases[0] + address));
    if (SHAPE == ROW_2)
        return _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(bases[0] + address))),
            _mm_loadu_si128(reinterpret_cast<const __m128i *>(bases[1] + address)), 1);
    long long words[4];
    for (int i = 0; i < 4; i++) memcpy(&words[i], bases[i] + address, 8);
    // Broadcast loads and blends: no shuffle unit is used.
    const __m256i w01 = _mm256_blend_epi32(_mm256_set1_epi64x(words[0]), _mm256_set1_epi64x(words[1]), 0x0c);
    const __m256i w23 = _mm256_blend_epi32(_mm256_set1_epi64x(words[2]), _mm256_set1_epi64x(words[3]), 0xc0);
    return _mm256_blend_epi32(w01, w23, 0xf0);
}

struct QuadWeights {
    __m256i bytes, signs;
};

template <bool SIGNED>
inline QuadWeights load_weights(const Quad &quad) {
    int32_t weights, signs;
    memcpy(&weights, quad.weight, 4);
    memcpy(&signs, quad.sign, 4);
    if (SIGNED) return {_mm256_abs_epi8(_mm256_set1_epi32(weights)), _mm256_set1_epi32(signs)};
    return {_mm256_set1_epi32(weights), _mm256_set1_epi16(1)};
}

template <bool SIGNED>
inline __m256i add_quads(__m256i acc, __m256i bytes, const QuadWeights &w) {
    const __m256i pairs = SIGNED ? _mm256_maddubs_epi16(w.bytes, bytes) : _mm256_maddubs_epi16(bytes, w.bytes);
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, w.signs));
}

// acc[0..3] hold the pixels 0-3 and 16-19, 4-7 and 20-23, 8-11 and 24-27, 12-15 and 28-31 of the group.
template <bool SIGNED>
inline void mac_group(__m256i acc[4], const __m256i x[4], const QuadWeights &w) {
    const __m256i ab_lo = _mm256_unpacklo_epi8(x[0], x[1]), ab_hi = _mm256_unpackhi_epi8(x[0], x[1]);
    const __m256i cd_lo = _mm256_unpacklo_epi8(x[2], x[3]), cd_hi = _mm256_unpackhi_epi8(x[2], x[3]);
    acc[0] = add_quads<SIGNED>(acc[0], _mm256_unpacklo_epi16(ab_lo, cd_lo), w);
    acc[1] = add_quads<SIGNED>(acc[1], _mm256_unpackhi_epi16(ab_lo, cd_lo), w);
    acc[2] = add_quads<SIGNED>(acc[2], _mm256_unpacklo_epi16(ab_hi, cd_hi), w);
    acc[3] = add_quads<SIGNED>(acc[3], _mm256_unpackhi_epi16(ab_hi, cd_hi), w);
}

template <Shape SHAPE, int GROUPS, bool SIGNED, bool MASKED>
inline void mac_quads(const uint8_t *const *bases, const Quad *quads, int num_quads, const uint8_t *masks,
                      __m256i acc[GROUPS][4]) {
    constexpr int STEP = BASES_PER_GROUP[SHAPE];
    for (int q = 0; q < num_quads; q++) {
        const QuadWeights w = load_weights<SIGNED>(quads[q]);
        for (int g = 0; g < GROUPS; g++) {
            __m256i x[4];
            for (int k = 0; k < 4; k++) {
                x[k] = load_group<SHAPE>(bases + g * STEP, quads[q].address[k]);
                if (MASKED)
                    x[k] = _mm256_and_si256(
                        x[k], _mm256_set1_epi64x(static_cast<long long>(LANE_BYTES[masks[4 * q + k]])));
            }
            mac_group<SIGNED>(acc[g], x, w);
        }
    }
}

inline void store_group(const __m256i acc[4], int32_t *out) {
    for (int i = 0; i < 4; i++) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 4 * i), _mm256_castsi256_si128(acc[i]));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 16 + 4 * i), _mm256_extracti128_si256(acc[i], 1));
    }
}

template <Shape SHAPE, int GROUPS>
void mac(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    __m256i acc[GROUPS][4];
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < 4; i++) acc[g][i] = _mm256_set1_epi32(bias);
    const Quad *quads = list.quads;
    mac_quads<SHAPE, GROUPS, false, false>(bases, quads, list.num_unsigned, nullptr, acc);
    quads += list.num_unsigned;
    mac_quads<SHAPE, GROUPS, true, false>(bases, quads, list.num_signed, nullptr, acc);
    quads += list.num_signed;
    if (list.num_masked_unsigned + list.num_masked_signed) {
        mac_quads<SHAPE, GROUPS, false, true>(bases, quads, list.num_masked_unsigned, list.masks, acc);
        quads += list.num_masked_unsigned;
        const uint8_t *masks = list.masks + 4 * list.num_masked_unsigned;
        mac_quads<SHAPE, GROUPS, true, true>(bases, quads, list.num_masked_signed, masks, acc);
    }
    for (int g = 0; g < GROUPS; g++) store_group(acc[g], out + g * GROUP_LANES);
}

// One word: the same with half the width, and a lane for every pixel.
template <bool SIGNED, bool MASKED>
inline void mac_single_quads(const uint8_t *base, const Quad *quads, int num_quads, const uint8_t *masks,
                             __m128i acc[2]) {
    for (int q = 0; q < num_quads; q++) {
        const QuadWeights wide = load_weights<SIGNED>(quads[q]);
        const __m128i w = _mm256_castsi256_si128(wide.bytes), signs = _mm256_castsi256_si128(wide.signs);
        __m128i x[4];
        for (int k = 0; k < 4; k++) {
            x[k] = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(base + quads[q].address[k]));
            if (MASKED)
                x[k] = _mm_and_si128(x[k], _mm_set1_epi64x(static_cast<long long>(LANE_BYTES[masks[4 * q + k]])));
        }
        const __m128i ab = _mm_unpacklo_epi8(x[0], x[1]), cd = _mm_unpacklo_epi8(x[2], x[3]);
        const __m128i bytes[2] = {_mm_unpacklo_epi16(ab, cd), _mm_unpackhi_epi16(ab, cd)};
        for (int i = 0; i < 2; i++) {
            const __m128i pairs = SIGNED ? _mm_maddubs_epi16(w, bytes[i]) : _mm_maddubs_epi16(bytes[i], w);
            acc[i] = _mm_add_epi32(acc[i], _mm_madd_epi16(pairs, signs));
        }
    }
}

void mac_single(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    __m128i acc[2] = {_mm_set1_epi32(bias), _mm_set1_epi32(bias)};
    const Quad *quads = list.quads;
    mac_single_quads<false, false>(bases[0], quads, list.num_unsigned, nullptr, acc);
    quads += list.num_unsigned;
    mac_single_quads<true, false>(bases[0], quads, list.num_signed, nullptr, acc);
    quads += list.num_signed;
    mac_single_quads<false, true>(bases[0], quads, list.num_masked_unsigned, list.masks, acc);
    quads += list.num_masked_unsigned;
    mac_single_quads<true, true>(bases[0], quads, list.num_masked_signed, list.masks + 4 * list.num_masked_unsigned,
                                 acc);
    for (int i = 0; i < 2; i++) _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 4 * i), acc[i]);
}

template <Shape SHAPE, int GROUPS>
void max(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip, uint8_t *out) {
    constexpr int STEP = BASES_PER_GROUP[SHAPE];
    const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
    __m256i best[GROUPS];
    for (int g = 0; g < GROUPS; g++) best[g] = _mm256_setzero_si256();
    for (int k = 0; k < num_taps; k++) {
        const __m256i mask = _mm256_set1_epi64x(static_cast<long long>(LANE_BYTES[taps[k].lane_mask]));
        for (int g = 0; g < GROUPS; g++) {
            const __m256i x = _mm256_xor_si256(load_group<SHAPE>(bases + g * STEP, taps[k].address), flips);
            best[g] = _mm256_max_epu8(best[g], _mm256_and_si256(x, mask));
        }
    }
    for (int g = 0; g < GROUPS; g++) _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + g * GROUP_LANES), best[g]);
}

void max_single(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip, uint8_t *out) {
    const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
    __m128i best = _mm_setzero_si128();
    for (int k = 0; k < num_taps; k++) {
        const __m128i mask = _mm_set1_epi64x(static_cast<long long>(LANE_BYTES[taps[k].lane_mask]));
        const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(bases[0] + taps[k].address));
        best = _mm_max_epu8(best, _mm_and_si128(_mm_xor_si128(x, flips), mask));
    }
    _mm_storel_epi64(reinterpret_cast<__m128i *>(out), best);
}

// Requantisation of 8 lanes at a time in 64-bit products. Logical shifts serve: only the low 32 bits of a shifted
// product are used, and they hold it whole when ib + 14 - shift <= 30.
struct RequantConstants {
    __m128i pre_shift, shift, shift_up;
    __m256i t_lo, t_hi, multiplier, half, clamp_lo, clamp_hi;
};

inline RequantConstants requant_constants(const Requant &by) {
    const int t_limit = 1 << (by.ib - 1);
    return {_mm_cvtsi32_si128(by.pre_shift),
            _mm_cvtsi32_si128(by.shift),
            _mm_cvtsi32_si128(32 - by.shift),
            _mm256_set1_epi32(-t_limit),
            _mm256_set1_epi32(t_limit - 1),
            _mm256_set1_epi32(by.multiplier),
            _mm256_set1_epi64x(1LL << (by.shift - 1)),
            _mm256_set1_epi32(by.clamp_lo),
            _mm256_set1_epi32(by.clamp_hi)};
}

inline __m256i requantize_8(const int32_t *acc, const RequantConstants &c) {
    __m256i t = _mm256_sra_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(acc)), c.pre_shift);
    t = _mm256_min_epi32(_mm256_max_epi32(t, c.t_lo), c.t_hi);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(t, c.multiplier), c.half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(t, 32), c.multiplier), c.half);
    const __m256i v = _mm256_blend_epi32(_mm256_srl_epi64(even, c.shift), _mm256_sll_epi64(odd, c.shift_up), 0xaa);
    return _mm256_and_si256(_mm256_min_epi32(_mm256_max_epi32(v, c.clamp_lo), c.clamp_hi), _mm256_set1_epi32(0xff));
}

void requantize(const int32_t *acc, int num_lanes, const Requant &by, uint8_t *out) {
    if (by.ib + 14 - by.shift > 30) return BODY_PLAIN.requantize(acc, num_lanes, by, out);
    const RequantConstants c = requant_constants(by);
    if (num_lanes == 8) {
        const __m256i v = requantize_8(acc, c);
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i *>(out), _mm_packus_epi16(words, words));
        return;
    }
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int p = 0; p < num_lanes; p += GROUP_LANES) {
        const __m256i a = _mm256_packus_epi32(requantize_8(acc + p, c), requantize_8(acc + p + 8, c));
        const __m256i b = _mm256_packus_epi32(requantize_8(acc + p + 16, c), requantize_8(acc + p + 24, c));
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + p), bytes);
    }
}

bool is_supported() { return __builtin_cpu_supports("avx2"); }

}  // namespace

const Body BODY_AVX2 = {
    "avx2",
    is_supported,
    true,
    {{mac<ROW_4, 1>, mac<ROW_4, 2>}, {mac<ROW_2, 1>, mac<ROW_2, 2>}, {mac<ROW_1, 1>, mac<ROW_1, 2>}, {mac_single}},
    {{max<ROW_4, 1>, max<ROW_4, 2>}, {max<ROW_2, 1>, max<ROW_2, 2>}, {max<ROW_1, 1>, max<ROW_1, 2>}, {max_single}},
    requantize,
};

}  // namespace rasna

#endif
