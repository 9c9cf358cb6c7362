// Arranges the taps of a list in quads.
#ifndef RASNA_SIM_QUADS_H
#define RASNA_SIM_QUADS_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "bodies.h"

namespace rasna {

struct Tap {
    uint16_t address;
    int8_t weight;
    uint8_t lane_mask;
};

class QuadBuilder {
  public:
    // wants_pairs: of the body that will use the quads.
    explicit QuadBuilder(bool wants_pairs) : wants_pairs_(wants_pairs) {}

    // Append the taps to `quads` (and their lane masks to `masks`, unless it is null), in an order that pleases the body.
    // Returns the number of quads. The taps are reordered.
    uint32_t append(Tap *taps, size_t num_taps, bool is_signed, std::vector<Quad> &quads, std::vector<uint8_t> *masks);

  private:
    class Writer;
    void pair_in_order(const Tap *taps, size_t num_taps, int16_t sign, Writer &writer) const;
    void pair_by_sign(Tap *taps, size_t num_taps, Writer &writer) const;
    void pair_by_magnitude(Tap *taps, size_t num_taps, Writer &writer);
    void sort_by_magnitude(const Tap *taps, size_t num_taps);

    bool wants_pairs_;
    std::vector<Tap> sorted_;
};

}  // namespace rasna

#endif
