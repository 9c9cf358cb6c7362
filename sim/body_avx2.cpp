// The tap loops for AVX2, and the requantisation of all x86 bodies.
//
// This file is compiled with -mavx2: it must contain no inline function that another file could share.
#include "bodies.h"

#if defined(__x86_64__)

#include "body_x86.h"
#include "processor.h"

namespace rasna {
namespace {

// pmaddubsw adds two products in int16 (exact, because the list is arranged in pairs, see bodies.h), pmaddwd adds the two
// pairs in int32. pmaddubsw needs one unsigned operand: for unsigned bytes that is the byte, for signed bytes the
// magnitude of the weight, and pmaddwd applies the sign.
struct PairDot {
    struct Weights {
        __m256i bytes, signs;
    };

    template <bool SIGNED>
    static Weights weights(const Quad &quad) {
        int32_t weights, signs;
        memcpy(&weights, quad.weight, 4);
        memcpy(&signs, quad.sign, 4);
        if (SIGNED) return {_mm256_abs_epi8(_mm256_set1_epi32(weights)), _mm256_set1_epi32(signs)};
        return {_mm256_set1_epi32(weights), _mm256_set1_epi16(1)};
    }

    template <bool SIGNED>
    static __m256i add(__m256i acc, __m256i bytes, const Weights &w) {
        const __m256i pairs = SIGNED ? _mm256_maddubs_epi16(w.bytes, bytes) : _mm256_maddubs_epi16(bytes, w.bytes);
        return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, w.signs));
    }

    template <bool SIGNED>
    static __m128i add(__m128i acc, __m128i bytes, const Weights &wide) {
        const __m128i w = _mm256_castsi256_si128(wide.bytes), signs = _mm256_castsi256_si128(wide.signs);
        const __m128i pairs = SIGNED ? _mm_maddubs_epi16(w, bytes) : _mm_maddubs_epi16(bytes, w);
        return _mm_add_epi32(acc, _mm_madd_epi16(pairs, signs));
    }

    static int32_t start(int32_t bias, const MacList &) { return bias; }
};

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

bool is_supported() { return has_avx2(read_processor()); }

}  // namespace

const Body BODY_AVX2 = {
    "avx2",
    is_supported,
    true,
    {{mac<PairDot, ROW_4, 1>, mac<PairDot, ROW_4, 2>},
     {mac<PairDot, ROW_2, 1>, mac<PairDot, ROW_2, 2>},
     {mac<PairDot, ROW_1, 1>, mac<PairDot, ROW_1, 2>},
     {mac_single<PairDot>}},
    {{max<ROW_4, 1>, max<ROW_4, 2>}, {max<ROW_2, 1>, max<ROW_2, 2>}, {max<ROW_1, 1>, max<ROW_1, 2>}, {max_single}},
    requantize,
};

}  // namespace rasna

#endif
