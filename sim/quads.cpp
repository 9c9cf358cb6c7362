#include "quads.h"

#include <stdlib.h>

#include <algorithm>

namespace rasna {
namespace {

constexpr int MAX_UNSIGNED_PAIR = 128;  // 128 * 255 fits int16; no weight has a larger magnitude

int magnitude(const Tap &tap) { return abs(static_cast<int>(tap.weight)); }

}  // namespace

// Fills quads pair by pair. The taps of a pair that is not there have weight 0 and the address of one that is.
class QuadBuilder::Writer {
  public:
    Writer(std::vector<Quad> &quads, std::vector<uint8_t> *masks) : quads_(quads), masks_(masks) {}

    void add_pair(const Tap &a, const Tap &b, int16_t sign) {
        const int half = num_pairs_ % 2;
        if (half == 0) {
            quads_.push_back(Quad{{a.address, a.address, a.address, a.address}, {0, 0, 0, 0}, {sign, sign}});
            if (masks_) masks_->insert(masks_->end(), 4, 0);
        }
        Quad &quad = quads_.back();
        const Tap *const taps[2] = {&a, &b};
        for (int i = 0; i < 2; i++) {
            quad.address[2 * half + i] = taps[i]->address;
            quad.weight[2 * half + i] = taps[i]->weight;
            if (masks_) (*masks_)[masks_->size() - 4 + 2 * half + i] = taps[i]->lane_mask;
        }
        quad.sign[half] = sign;
        num_pairs_++;
    }

    void add_alone(const Tap &a, int16_t sign) { add_pair(a, Tap{a.address, 0, a.lane_mask}, sign); }

  private:
    std::vector<Quad> &quads_;
    std::vector<uint8_t> *masks_;
    int num_pairs_ = 0;
};

// Any two neighbours.
void QuadBuilder::pair_in_order(const Tap *taps, size_t num_taps, int16_t sign, Writer &writer) const {
    for (size_t i = 0; i + 1 < num_taps; i += 2) writer.add_pair(taps[i], taps[i + 1], sign);
    if (num_taps % 2) writer.add_alone(taps[num_taps - 1], sign);
}

// Pairs of the same sign.
void QuadBuilder::pair_by_sign(Tap *taps, size_t num_taps, Writer &writer) const {
    Tap *const negative = std::partition(taps, taps + num_taps, [](const Tap &t) { return t.weight > 0; });
    const size_t num_positive = static_cast<size_t>(negative - taps);
    pair_in_order(taps, num_positive, 1, writer);
    pair_in_order(negative, num_taps - num_positive, -1, writer);
}

// The smallest magnitude first (counting sort: lists are long and magnitudes few).
void QuadBuilder::sort_by_magnitude(const Tap *taps, size_t num_taps) {
    sorted_.resize(num_taps);
    uint32_t starts[MAX_UNSIGNED_PAIR + 2] = {};
    for (size_t i = 0; i < num_taps; i++) starts[magnitude(taps[i]) + 1]++;
    for (int m = 1; m <= MAX_UNSIGNED_PAIR; m++) starts[m] += starts[m - 1];
    for (size_t i = 0; i < num_taps; i++) sorted_[starts[magnitude(taps[i])]++] = taps[i];
}

// Opposite signs fit together always: the sum lies between the two products. What is left of the more frequent sign,
// its smallest magnitudes, is paired the largest with the smallest as long as the pair is allowed.
void QuadBuilder::pair_by_magnitude(Tap *taps, size_t num_taps, Writer &writer) {
    Tap *const negative = std::partition(taps, taps + num_taps, [](const Tap &t) { return t.weight > 0; });
    const size_t num_positive = static_cast<size_t>(negative - taps);
    const size_t num_few = std::min(num_positive, num_taps - num_positive);
    const bool more_positive = num_positive > num_few;
    const Tap *few = more_positive ? negative : taps;
    sort_by_magnitude(more_positive ? taps : negative, num_taps - num_few);
    size_t lo = 0, hi = num_taps - num_few;
    for (size_t i = 0; i < num_few; i++) writer.add_pair(few[i], sorted_[--hi], 1);
    while (lo < hi) {
        const Tap &largest = sorted_[--hi];
        if (lo < hi && magnitude(sorted_[lo]) + magnitude(largest) <= MAX_UNSIGNED_PAIR)
            writer.add_pair(sorted_[lo++], largest, 1);
        else
            writer.add_alone(largest, 1);
    }
}

uint32_t QuadBuilder::append(Tap *taps, size_t num_taps, bool is_signed, std::vector<Quad> &quads,
                             std::vector<uint8_t> *masks) {
    const size_t before = quads.size();
    Writer writer(quads, masks);
    if (!wants_pairs_)
        pair_in_order(taps, num_taps, 1, writer);
    else if (is_signed)
        pair_by_sign(taps, num_taps, writer);
    else
        pair_by_magnitude(taps, num_taps, writer);
    return static_cast<uint32_t>(quads.size() - before);
}

}  // namespace rasna
