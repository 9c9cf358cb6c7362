// The tap loops of the x86 bodies: 32 lanes at a time in 256-bit registers.
//
// Four taps at a time: their bytes are interleaved by pixel, and Dot multiplies the four bytes of a pixel by four weights
// and adds the products to the pixel's int32. Dot is a struct of
//   Weights                                          what it needs of a quad
//   Weights weights<SIGNED>(const Quad &)
//   __m256i add<SIGNED>(__m256i acc, __m256i bytes, const Weights &), and the same with 128 bits
//   int32_t start(int32_t bias, const MacList &)     what the sums begin with
//
// Each file that includes this one is compiled for a processor of its own: everything here has internal linkage, so that
// no function of one file is ever used by another.
#ifndef RASNA_SIM_BODY_X86_H
#define RASNA_SIM_BODY_X86_H

#include <immintrin.h>
#include <string.h>

#include "bodies.h"

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

// acc[0..3] hold the pixels 0-3 and 16-19, 4-7 and 20-23, 8-11 and 24-27, 12-15 and 28-31 of the group.
template <class Dot, bool SIGNED>
inline void mac_group(__m256i acc[4], const __m256i x[4], const typename Dot::Weights &w) {
    const __m256i ab_lo = _mm256_unpacklo_epi8(x[0], x[1]), ab_hi = _mm256_unpackhi_epi8(x[0], x[1]);
    const __m256i cd_lo = _mm256_unpacklo_epi8(x[2], x[3]), cd_hi = _mm256_unpackhi_epi8(x[2], x[3]);
    acc[0] = Dot::template add<SIGNED>(acc[0], _mm256_unpacklo_epi16(ab_lo, cd_lo), w);
    acc[1] = Dot::template add<SIGNED>(acc[1], _mm256_unpackhi_epi16(ab_lo, cd_lo), w);
    acc[2] = Dot::template add<SIGNED>(acc[2], _mm256_unpacklo_epi16(ab_hi, cd_hi), w);
    acc[3] = Dot::template add<SIGNED>(acc[3], _mm256_unpackhi_epi16(ab_hi, cd_hi), w);
}

inline void store_group(const __m256i acc[4], int32_t *out) {
    for (int i = 0; i < 4; i++) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 4 * i), _mm256_castsi256_si128(acc[i]));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 16 + 4 * i), _mm256_extracti128_si256(acc[i], 1));
    }
}

inline long long lanes_of(uint8_t mask) { return static_cast<long long>(LANE_BYTES[mask]); }

// Up to two groups.
template <class Dot, Shape SHAPE, int GROUPS>
struct GroupSums {
    __m256i acc[GROUPS][4];

    explicit GroupSums(int32_t start) {
        for (int g = 0; g < GROUPS; g++)
            for (int i = 0; i < 4; i++) acc[g][i] = _mm256_set1_epi32(start);
    }

    template <bool SIGNED, bool MASKED>
    void add(const uint8_t *const *bases, const Quad *quads, int num_quads, const uint8_t *masks) {
        for (int q = 0; q < num_quads; q++) {
            const typename Dot::Weights w = Dot::template weights<SIGNED>(quads[q]);
            for (int g = 0; g < GROUPS; g++) {
                __m256i x[4];
                for (int k = 0; k < 4; k++) {
                    x[k] = load_group<SHAPE>(bases + g * BASES_PER_GROUP[SHAPE], quads[q].address[k]);
                    if (MASKED) x[k] = _mm256_and_si256(x[k], _mm256_set1_epi64x(lanes_of(masks[4 * q + k])));
                }
                mac_group<Dot, SIGNED>(acc[g], x, w);
            }
        }
    }

    void store(int32_t *out) const {
        for (int g = 0; g < GROUPS; g++) store_group(acc[g], out + g * GROUP_LANES);
    }
};

// One word: the same with half the width, and a lane for every pixel.
template <class Dot>
struct WordSums {
    __m128i acc[2];

    explicit WordSums(int32_t start) : acc{_mm_set1_epi32(start), _mm_set1_epi32(start)} {}

    template <bool SIGNED, bool MASKED>
    void add(const uint8_t *const *bases, const Quad *quads, int num_quads, const uint8_t *masks) {
        for (int q = 0; q < num_quads; q++) {
            const typename Dot::Weights w = Dot::template weights<SIGNED>(quads[q]);
            __m128i x[4];
            for (int k = 0; k < 4; k++) {
                x[k] = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(bases[0] + quads[q].address[k]));
                if (MASKED) x[k] = _mm_and_si128(x[k], _mm_set1_epi64x(lanes_of(masks[4 * q + k])));
            }
            const __m128i ab = _mm_unpacklo_epi8(x[0], x[1]), cd = _mm_unpacklo_epi8(x[2], x[3]);
            acc[0] = Dot::template add<SIGNED>(acc[0], _mm_unpacklo_epi16(ab, cd), w);
            acc[1] = Dot::template add<SIGNED>(acc[1], _mm_unpackhi_epi16(ab, cd), w);
        }
    }

    void store(int32_t *out) const {
        for (int i = 0; i < 2; i++) _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 4 * i), acc[i]);
    }
};

// A whole list. Sums: one of the structs above.
template <class Dot, class Sums>
inline void mac_list(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    Sums sums(Dot::start(bias, list));
    const Quad *quads = list.quads;
    sums.template add<false, false>(bases, quads, list.num_unsigned, nullptr);
    quads += list.num_unsigned;
    sums.template add<true, false>(bases, quads, list.num_signed, nullptr);
    quads += list.num_signed;
    if (list.num_masked_unsigned + list.num_masked_signed) {
        sums.template add<false, true>(bases, quads, list.num_masked_unsigned, list.masks);
        quads += list.num_masked_unsigned;
        const uint8_t *masks = list.masks + 4 * list.num_masked_unsigned;
        sums.template add<true, true>(bases, quads, list.num_masked_signed, masks);
    }
    sums.store(out);
}

template <class Dot, Shape SHAPE, int GROUPS>
void mac(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    mac_list<Dot, GroupSums<Dot, SHAPE, GROUPS>>(bases, list, bias, out);
}

template <class Dot>
void mac_single(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    mac_list<Dot, WordSums<Dot>>(bases, list, bias, out);
}

}  // namespace
}  // namespace rasna

#endif
