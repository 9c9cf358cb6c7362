// The inner loops of TAPS, the only part of the machine that is written more than once.
//
// A body works on one chunk of tiles at a time: 8, 32 or 64 lanes (pixels) of one output channel, over the whole tap
// list of that channel. All bodies give the same bits (tests/sim/test_bodies.py); which one runs is chosen when a context
// is made. Sums wrap modulo 2^32 as in hardware.
#ifndef RASNA_SIM_BODIES_H
#define RASNA_SIM_BODIES_H

#include <stdint.h>

namespace rasna {

constexpr int GROUP_LANES = 32;
constexpr int CHUNK_LANES = 64;

// How the lanes of a group of tiles lie in the map memory. The bases are where the vectors of a tap with address 0 start.
enum Shape {
    ROW_4 = 0,   // 32 lanes: 4 words in a row; 1 base per group
    ROW_2 = 1,   // 32 lanes: 2 times 2 words in a row; 2 bases per group
    ROW_1 = 2,   // 32 lanes: 4 single words; 4 bases per group
    SINGLE = 3,  // 8 lanes: one word; 1 base
};
constexpr int NUM_SHAPES = 4;
constexpr int BASES_PER_GROUP[NUM_SHAPES] = {1, 2, 4, 1};

// Four taps. Where there are fewer, the weights of the rest are 0. sign: see Body::wants_pairs.
struct Quad {
    uint16_t address[4];  // bytes behind the bases
    int8_t weight[4];
    int16_t sign[2];
};
static_assert(sizeof(Quad) == 16, "the loops step through quads of 16 bytes");

// The MAC taps of one channel. The quads of the four kinds follow one another in this order.
struct MacList {
    const Quad *quads;
    int num_unsigned, num_signed;  // all lanes take part
    int num_masked_unsigned, num_masked_signed;
    const uint8_t *masks;    // lane masks of the masked quads, 4 bytes per quad
    int32_t signed_weights;  // sum of the weights of all signed taps
};

struct MaxTap {
    uint16_t address;
    uint8_t lane_mask;
};

// The fields of TAPS and of a channel record that requantisation needs.
struct Requant {
    int pre_shift, multiplier, shift;
    int ib, clamp_lo, clamp_hi;
};

struct Body {
    const char *name;
    bool (*is_supported)();  // by this processor

    // The list is arranged so that weight[0]*x0 + weight[1]*x1 fits int16, and so do the other two: in unsigned quads
    // the two weights have opposite signs or |weight[0]| + |weight[1]| <= 128; in signed quads weight[0] and weight[1]
    // have the sign sign[0] (1 or -1), and weight[2] and weight[3] have sign[1].
    bool wants_pairs;

    // acc[lane] = bias + sum of weight * x. One or two groups; [SINGLE][1] is not used.
    void (*mac[NUM_SHAPES][2])(const uint8_t *const *bases, const MacList &list, int32_t bias, int32_t *acc);

    // out[lane] = max of (byte ^ flip) over the taps that have the lane, 0 where there is none. flip 0x80 makes signed
    // bytes unsigned in the same order.
    void (*max[NUM_SHAPES][2])(const uint8_t *const *bases, const MaxTap *taps, int num_taps, uint8_t flip,
                               uint8_t *out);

    // out[lane] = low 8 bits of the requantised acc[lane]; num_lanes is 8, 32 or 64.
    void (*requantize)(const int32_t *acc, int num_lanes, const Requant &by, uint8_t *out);
};

// All bodies that were compiled in, the fastest first, plain last; a null pointer ends the list.
extern const Body *const ALL_BODIES[];

extern const Body BODY_PLAIN, BODY_AVX2, BODY_VNNI, BODY_NEON;

// 8 bytes of 0xff or 0 by lane.
extern const uint64_t LANE_BYTES[256];

}  // namespace rasna

#endif
