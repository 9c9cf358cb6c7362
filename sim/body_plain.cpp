// The tap loops in plain C++: what the other bodies are tested against, and the one that runs everywhere.
#include <string.h>

#include "../hls/requantize.h"
#include "bodies.h"

// g++ 12 vectorises these loops only when told to; the trip counts are constants.
#define RASNA_LANES _Pragma("omp simd")

namespace rasna {
namespace {

template <Shape SHAPE, int GROUPS>
struct Lanes {
    static constexpr int count = SHAPE == SINGLE ? 8 : GROUPS * GROUP_LANES;
    static constexpr int piece = SHAPE == ROW_4 ? 32 : SHAPE == ROW_2 ? 16 : 8;
};

template <Shape SHAPE, int GROUPS>
inline void gather(const uint8_t *const *bases, int address, uint8_t *bytes) {
    using L = Lanes<SHAPE, GROUPS>;
    for (int i = 0; i < L::count / L::piece; i++) memcpy(bytes + i * L::piece, bases[i] + address, L::piece);
}

inline void apply_mask(uint8_t *bytes, int count, uint8_t lane_mask) {
    for (int i = 0; i < count; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        word &= LANE_BYTES[lane_mask];
        memcpy(bytes + i, &word, 8);
    }
}

template <Shape SHAPE, int GROUPS, typename Byte>
inline void mac_quads(const uint8_t *const *bases, const Quad *quads, int num_quads, const uint8_t *masks,
                      int32_t *acc) {
    constexpr int N = Lanes<SHAPE, GROUPS>::count;
    for (int k = 0; k < 4 * num_quads; k++) {
        const int16_t weight = quads[k / 4].weight[k % 4];
        if (weight == 0) continue;
        uint8_t bytes[N];
        gather<SHAPE, GROUPS>(bases, quads[k / 4].address[k % 4], bytes);
        if (masks) apply_mask(bytes, N, masks[k]);
        RASNA_LANES
        for (int p = 0; p < N; p++) acc[p] += static_cast<int16_t>(weight * static_cast<int16_t>((Byte)bytes[p]));
    }
}

template <Shape SHAPE, int GROUPS>
void mac(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *out) {
    constexpr int N = Lanes<SHAPE, GROUPS>::count;
    int32_t acc[N];
    for (int p = 0; p < N; p++) acc[p] = bias;
    const Quad *quads = list.quads;
    mac_quads<SHAPE, GROUPS, uint8_t>(bases, quads, list.num_unsigned, nullptr, acc);
    quads += list.num_unsigned;
    mac_quads<SHAPE, GROUPS, int8_t>(bases, quads, list.num_signed, nullptr, acc);
    quads += list.num_signed;
    mac_quads<SHAPE, GROUPS, uint8_t>(bases, quads, list.num_masked_unsigned, list.masks, acc);
    quads += list.num_masked_unsigned;
    const uint8_t *masks = list.masks + 4 * list.num_masked_unsigned;
    mac_quads<SHAPE, GROUPS, int8_t>(bases, quads, list.num_masked_signed, masks, acc);
    memcpy(out, acc, sizeof acc);
}

template <Shape SHAPE, int GROUPS>
void max(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip, uint8_t *out) {
    constexpr int N = Lanes<SHAPE, GROUPS>::count;
    uint8_t best[N] = {};
    for (int k = 0; k < num_taps; k++) {
        uint8_t bytes[N];
        gather<SHAPE, GROUPS>(bases, taps[k].address, bytes);
        for (int p = 0; p < N; p++) bytes[p] ^= flip;
        if (taps[k].lane_mask != 0xff) apply_mask(bytes, N, taps[k].lane_mask);
        RASNA_LANES
        for (int p = 0; p < N; p++) best[p] = bytes[p] > best[p] ? bytes[p] : best[p];
    }
    memcpy(out, best, N);
}

void requantize_lanes(const int32_t *acc, int num_lanes, const Requant &by, uint8_t *out) {
    const Requantizer r = requantizer(by.ib, by.pre_shift, by.multiplier, by.shift,
                                      static_cast<int16_t>(by.clamp_lo), static_cast<int16_t>(by.clamp_hi));
    for (int p = 0; p < num_lanes; p++) out[p] = requantize(acc[p], r);
}

bool always() { return true; }

}  // namespace

const Body BODY_PLAIN = {
    "plain",
    always,
    false,
    {{mac<ROW_4, 1>, mac<ROW_4, 2>}, {mac<ROW_2, 1>, mac<ROW_2, 2>}, {mac<ROW_1, 1>, mac<ROW_1, 2>}, {mac<SINGLE, 1>}},
    {{max<ROW_4, 1>, max<ROW_4, 2>}, {max<ROW_2, 1>, max<ROW_2, 2>}, {max<ROW_1, 1>, max<ROW_1, 2>}, {max<SINGLE, 1>}},
    requantize_lanes,
};

}  // namespace rasna
