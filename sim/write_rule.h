// Where rows lie in all stripes, by the hardware's own rule: place_row in hls/map_memory.h.
#ifndef RASNA_SIM_WRITE_RULE_H
#define RASNA_SIM_WRITE_RULE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../hls/map_memory.h"
#include "../hls/targets.h"

namespace rasna {

class WriteRule {
  public:
    explicit WriteRule(const Destination &to) : to_(to) {
        const OriginSteps steps = origin_steps(to);
        StripeOrigin origin = first_origin(to);
        for (int stripe = 0; stripe < num_stripes(); stripe++) {
            origins_[stripe] = origin;
            origin = next_origin(origin, steps, to.circular);
        }
    }

    int num_stripes() const { return 1 << to_.stripes_log2; }

    // The first word of destination row `row` (out_row included) in the slices of a stripe, or -1 where it is not stored.
    int word(int stripe, int row) const {
        const uint16_t straight = static_cast<uint16_t>(to_.base + row * static_cast<int>(to_.row_step));
        const Place place = place_row(row, straight, origins_[stripe], to_);
        return place.stored ? place.word : -1;
    }

    // The number of that row in the slice's own rows, or -1: its word if rows were one word apart from word 0 on.
    static WriteRule of_local_rows(Destination to) {
        to.base = 0;
        to.row_step = 1;
        return WriteRule(to);
    }

  private:
    const Destination to_;
    StripeOrigin origins_[Target::slices];
};

// A parted word: its even bytes go to `even`, its odd ones `odd` bytes behind.
inline void write_split_word(uint8_t *even, size_t odd, uint64_t word) {
    const uint64_t parts = part_bytes(word);
    const uint32_t halves[2] = {static_cast<uint32_t>(parts), static_cast<uint32_t>(parts >> 32)};
    memcpy(even, &halves[0], sizeof halves[0]);
    memcpy(even + odd, &halves[1], sizeof halves[1]);
}

}  // namespace rasna

#endif
