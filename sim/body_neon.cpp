// The tap loops for NEON, 32-bit and 64-bit Arm: bytes are widened to int16, products are added in int32 (vmlal).
#include "bodies.h"

#if defined(__ARM_NEON)

#include <arm_neon.h>
#include <string.h>

namespace rasna {
namespace {

template <Shape SHAPE, int GROUPS>
struct Lanes {
    static constexpr int count = SHAPE == SINGLE ? 8 : GROUPS * GROUP_LANES;
    static constexpr int words = count / 8;
    static constexpr int words_per_base = SHAPE == ROW_4 ? 4 : SHAPE == ROW_2 ? 2 : 1;
};

template <Shape SHAPE, int GROUPS>
inline uint8x8_t load_word(const uint8_t *const *bases, int address, int word) {
    constexpr int PER_BASE = Lanes<SHAPE, GROUPS>::words_per_base;
    return vld1_u8(bases[word / PER_BASE] + address + 8 * (word % PER_BASE));
}

template <bool SIGNED>
inline int16x8_t widen(uint8x8_t x) {
    return SIGNED ? vmovl_s8(vreinterpret_s8_u8(x)) : vreinterpretq_s16_u16(vmovl_u8(x));
}

template <Shape SHAPE, int GROUPS, bool SIGNED>
inline void mac_quads(const uint8_t *const *bases, const Quad *quads, int num_quads, const uint8_t *masks,
                      int32x4_t *acc) {
    for (int k = 0; k < 4 * num_quads; k++) {
        const int16_t weight = quads[k / 4].weight[k % 4];
        const int address = quads[k / 4].address[k % 4];
        const uint8x8_t mask = vcreate_u8(LANE_BYTES[masks ? masks[k] : 0xff]);
        for (int i = 0; i < Lanes<SHAPE, GROUPS>::words; i++) {
            const int16x8_t x = widen<SIGNED>(vand_u8(load_word<SHAPE, GROUPS>(bases, address, i), mask));
            acc[2 * i] = vmlal_n_s16(acc[2 * i], vget_low_s16(x), weight);
            acc[2 * i + 1] = vmlal_n_s16(acc[2 * i + 1], vget_high_s16(x), weight);
        }
    }
}

template <Shape SHAPE, int GROUPS>
void mac(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    constexpr int N = Lanes<SHAPE, GROUPS>::count / 4;
    int32x4_t acc[N];
    for (int i = 0; i < N; i++) acc[i] = vdupq_n_s32(bias);
    const Quad *quads = list.quads;
    mac_quads<SHAPE, GROUPS, false>(bases, quads, list.num_unsigned, nullptr, acc);
    quads += list.num_unsigned;
    mac_quads<SHAPE, GROUPS, true>(bases, quads, list.num_signed, nullptr, acc);
    quads += list.num_signed;
    mac_quads<SHAPE, GROUPS, false>(bases, quads, list.num_masked_unsigned, list.masks, acc);
    quads += list.num_masked_unsigned;
    const uint8_t *masks = list.masks + 4 * list.num_masked_unsigned;
    mac_quads<SHAPE, GROUPS, true>(bases, quads, list.num_masked_signed, masks, acc);
    for (int i = 0; i < N; i++) vst1q_s32(out + 4 * i, acc[i]);
}

template <Shape SHAPE, int GROUPS>
void max(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip, uint8_t *out) {
    constexpr int N = Lanes<SHAPE, GROUPS>::words;
    uint8x8_t best[N];
    for (int i = 0; i < N; i++) best[i] = vdup_n_u8(0);
    for (int k = 0; k < num_taps; k++) {
        const uint8x8_t mask = vcreate_u8(LANE_BYTES[taps[k].lane_mask]);
        for (int i = 0; i < N; i++) {
            const uint8x8_t x = veor_u8(load_word<SHAPE, GROUPS>(bases, taps[k].address, i), vdup_n_u8(flip));
            best[i] = vmax_u8(best[i], vand_u8(x, mask));
        }
    }
    for (int i = 0; i < N; i++) vst1_u8(out + 8 * i, best[i]);
}

inline int32x2_t requantize_2(int32x2_t t, int32x2_t multiplier, int64x2_t half, int64x2_t shift_down) {
    return vqmovn_s64(vshlq_s64(vaddq_s64(vmull_s32(t, multiplier), half), shift_down));
}

void requantize(const int32_t *acc, int num_lanes, const Requant &by, uint8_t *out) {
    const int32x4_t pre_shift = vdupq_n_s32(-by.pre_shift);
    const int32x4_t t_lo = vdupq_n_s32(-(1 << (by.ib - 1))), t_hi = vdupq_n_s32((1 << (by.ib - 1)) - 1);
    const int32x4_t clamp_lo = vdupq_n_s32(by.clamp_lo), clamp_hi = vdupq_n_s32(by.clamp_hi);
    const int32x2_t multiplier = vdup_n_s32(by.multiplier);
    const int64x2_t half = vdupq_n_s64(int64_t{1} << (by.shift - 1)), shift_down = vdupq_n_s64(-by.shift);
    for (int p = 0; p < num_lanes; p += 4) {
        int32x4_t t = vshlq_s32(vld1q_s32(acc + p), pre_shift);
        t = vminq_s32(vmaxq_s32(t, t_lo), t_hi);
        int32x4_t v = vcombine_s32(requantize_2(vget_low_s32(t), multiplier, half, shift_down),
                                   requantize_2(vget_high_s32(t), multiplier, half, shift_down));
        v = vminq_s32(vmaxq_s32(v, clamp_lo), clamp_hi);
        int32_t lanes[4];
        vst1q_s32(lanes, v);
        for (int i = 0; i < 4; i++) out[p + i] = static_cast<uint8_t>(lanes[i]);
    }
}

bool is_supported() { return true; }  // compiled in only where the compiler may use it everywhere

}  // namespace

const Body BODY_NEON = {
    "neon",
    is_supported,
    false,
    {{mac<ROW_4, 1>, mac<ROW_4, 2>}, {mac<ROW_2, 1>, mac<ROW_2, 2>}, {mac<ROW_1, 1>, mac<ROW_1, 2>}, {mac<SINGLE, 1>}},
    {{max<ROW_4, 1>, max<ROW_4, 2>}, {max<ROW_2, 1>, max<ROW_2, 2>}, {max<ROW_1, 1>, max<ROW_1, 2>}, {max<SINGLE, 1>}},
    requantize,
};

}  // namespace rasna

#endif
