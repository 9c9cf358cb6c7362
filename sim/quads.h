// Arranges the taps of a list in quads.
#ifndef RASNA_SIM_QUADS_H
#define RASNA_SIM_QUADS_H

#include <stdint.h>

#include <vector>

#include "bodies.h"

namespace rasna {

struct Tap {
    uint16_t address;
    int8_t weight;
    uint8_t lane_mask;
};

// Append the taps to `quads` (and their lane masks to `masks`, unless it is null), in any order that pleases the bodies
// (see Body::wants_pairs). Returns the number of quads. `taps` is reordered.
uint32_t append_quads(std::vector<Tap> &taps, bool is_signed, bool wants_pairs, std::vector<Quad> &quads,
                      std::vector<uint8_t> *masks);

}  // namespace rasna

#endif
