// A TAPS instruction, decoded once: which groups of tiles are computed, where their words go, and every tap list as
// arrays for the loops of bodies.h.
#ifndef RASNA_SIM_TAPS_PLAN_H
#define RASNA_SIM_TAPS_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "../hls/isa.h"
#include "../hls/targets.h"
#include "bodies.h"

namespace rasna {

// Bytes from one slice's map to the next. Not a power of two, so that the same word of several slices does not fall
// into the same cache set; the bytes between also serve the loads of whole groups that read behind a map's end.
constexpr size_t SLICE_STRIDE = static_cast<size_t>(Target::map_words) * WORD_BYTES + 64;

// A run of words of a group that go to consecutive words of one slice; with out_split to consecutive halves of both phases.
struct Copy {
    uint32_t to;         // bytes in the map memory, the channel's part not included; with out_split of the even bytes
    uint8_t first_word;  // of the group
    uint8_t num_words;
};

// Up to 32 lanes that are computed together.
struct Group {
    static constexpr int WORDS = GROUP_LANES / WORD_BYTES;
    static constexpr uint32_t NO_TILE = UINT32_MAX;

    uint32_t bases[WORDS];  // bytes in the map memory; BASES_PER_GROUP[shape] of them
    uint32_t tiles[WORDS];  // accumulator of each word, the channel's part not included; NO_TILE: a word nobody needs
    uint32_t copies_begin, copies_end;
    uint8_t last_words;  // bit i: word i is the last of its row and gets `fill` in the lanes from last_lanes on
};

// Where the taps of a list lie in the arrays of the plan.
struct ListRange {
    uint32_t quads = 0, num_unsigned = 0, num_signed = 0, num_masked_unsigned = 0, num_masked_signed = 0;
    uint32_t masks = 0;
    int32_t signed_weights = 0;
    uint32_t max_taps = 0, num_max_unsigned = 0, num_max_signed = 0;  // unsigned first
    uint8_t unsigned_lanes = 0, signed_lanes = 0;                     // lanes that some tap of the kind has
};

struct Channel {
    int32_t bias;
    int32_t src_shift;  // bytes added to the bases (a list is decoded with the src_base of its own channel)
    uint32_t to;        // bytes added to Copy::to
    uint32_t tile;      // added to Group::tiles
    uint32_t list;
    Requant requant;
};

struct TapsPlan {
    Taps fields;
    std::vector<Group> groups[NUM_SHAPES];
    std::vector<Copy> copies;
    std::vector<Channel> channels;
    std::vector<ListRange> lists;
    std::vector<Quad> quads;
    std::vector<uint8_t> masks;
    std::vector<MaxTap> max_taps;
    uint64_t keep[1 << Group::WORDS][Group::WORDS];     // by last_words: bytes that stay …
    uint64_t replace[1 << Group::WORDS][Group::WORDS];  // … and what the others become

    // Decode a validated instruction. words: the program; table: the offset table as it is when the instruction runs;
    // wants_pairs: of the body that will run it.
    TapsPlan(const Taps &fields, const uint64_t *words, const TableEntry *table, bool wants_pairs);

    size_t num_bytes() const;
};

}  // namespace rasna

#endif
