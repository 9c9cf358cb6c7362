// Runs a decoded TAPS: output channel → chunk of tiles → taps → lanes.
#include <string.h>

#include <algorithm>

#include "../hls/requantize.h"
#include "fast_machine.h"
#include "write_rule.h"

namespace rasna {
namespace {

class TapsRun {
  public:
    TapsRun(const TapsPlan &plan, const Body &body, const uint8_t *curve, uint8_t *map, int32_t *acc)
        : plan_(plan), body_(body), curve_(curve), map_(map), acc_(acc) {}

    void channel(const Channel &channel);

  private:
    void chunk(Shape shape, const Group *groups, int num_groups);
    void accumulate_mac(Shape shape, const uint8_t *const *bases, int num_groups, int num_lanes);
    void accumulate_max(Shape shape, const uint8_t *const *bases, int num_groups, int num_lanes);
    void make_bytes(int num_lanes, uint8_t *bytes) const;
    void take_max(const uint8_t *best, int num_lanes, uint8_t lanes, uint8_t flip);
    template <typename Use>
    void for_each_tile(const Group *groups, int num_groups, Use use);
    void write_split_words(uint8_t *map, const uint8_t *bytes, int num_words);
    void write_back(const Group &group, uint8_t *bytes);

    const TapsPlan &plan_;
    const Body &body_;
    const uint8_t *const curve_;
    uint8_t *const map_;
    int32_t *const acc_;
    const Channel *channel_ = nullptr;
    const ListRange *range_ = nullptr;
    MacList list_ = {};
    alignas(64) int32_t lanes_[CHUNK_LANES] = {};
};

// use(accumulators of the tile in memory, lanes of the chunk)
template <typename Use>
inline void TapsRun::for_each_tile(const Group *groups, int num_groups, Use use) {
    for (int i = 0; i < num_groups * Group::WORDS; i++) {
        const uint32_t tile = groups[i / Group::WORDS].tiles[i % Group::WORDS];
        if (tile != Group::NO_TILE)
            use(acc_ + static_cast<size_t>(tile + channel_->tile) * WORD_BYTES, lanes_ + i * WORD_BYTES);
    }
}

void TapsRun::accumulate_mac(Shape shape, const uint8_t *const *bases, int num_groups, int num_lanes) {
    (void)num_lanes;
    body_.mac[shape][num_groups - 1](bases, list_, plan_.fields.acc_init ? 0 : channel_->bias, lanes_);
}

// lanes_ = max(lanes_, best), in the lanes that some tap has.
void TapsRun::take_max(const uint8_t *best, int num_lanes, uint8_t lanes, uint8_t flip) {
    for (int p = 0; p < num_lanes; p++) {
        const int32_t value = static_cast<int32_t>(best[p]) - flip;
        if ((lanes >> (p % WORD_BYTES) & 1) && value > lanes_[p]) lanes_[p] = value;
    }
}

void TapsRun::accumulate_max(Shape shape, const uint8_t *const *bases, int num_groups, int num_lanes) {
    const MaxTap *taps = plan_.max_taps.data() + range_->max_taps;
    alignas(64) uint8_t best[CHUNK_LANES];
    if (range_->num_max_unsigned) {
        body_.max[shape][num_groups - 1](bases, taps, static_cast<int>(range_->num_max_unsigned), 0, best);
        take_max(best, num_lanes, range_->unsigned_lanes, 0);
    }
    if (range_->num_max_signed) {
        taps += range_->num_max_unsigned;
        body_.max[shape][num_groups - 1](bases, taps, static_cast<int>(range_->num_max_signed), 0x80, best);
        take_max(best, num_lanes, range_->signed_lanes, 0x80);
    }
}

// Words of a row, parted: `map` is where the first one's even bytes go.
void TapsRun::write_split_words(uint8_t *map, const uint8_t *bytes, int num_words) {
    const size_t odd = static_cast<size_t>(plan_.fields.out_phase_step) * WORD_BYTES;
    for (int i = 0; i < num_words; i++) {
        uint64_t word;
        memcpy(&word, bytes + i * WORD_BYTES, WORD_BYTES);
        write_split_word(map + i * WORD_BYTES / 2, odd, word);
    }
}

void TapsRun::write_back(const Group &group, uint8_t *bytes) {
    if (group.last_words) {
        uint64_t words[Group::WORDS];
        memcpy(words, bytes, sizeof words);
        for (int i = 0; i < Group::WORDS; i++)
            words[i] = (words[i] & plan_.keep[group.last_words][i]) | plan_.replace[group.last_words][i];
        memcpy(bytes, words, sizeof words);
    }
    uint8_t *const map = map_ + channel_->to;
    for (uint32_t i = group.copies_begin; i < group.copies_end; i++) {
        const Copy &copy = plan_.copies[i];
        const uint8_t *from = bytes + copy.first_word * WORD_BYTES;
        if (plan_.fields.out_split) {
            write_split_words(map + copy.to, from, copy.num_words);
            continue;
        }
        switch (copy.num_words) {
            case 1: memcpy(map + copy.to, from, WORD_BYTES); break;
            case 2: memcpy(map + copy.to, from, 2 * WORD_BYTES); break;
            case 3: memcpy(map + copy.to, from, 3 * WORD_BYTES); break;
            default: memcpy(map + copy.to, from, 4 * WORD_BYTES); break;
        }
    }
}

// The bytes of lanes_: requantised, and through the curve.
void TapsRun::make_bytes(int num_lanes, uint8_t *bytes) const {
    const Requant &by = channel_->requant;
    if (plan_.fields.func == FUNC_PRODUCT) {
        const Requantizer r = requantizer(by.ib, by.pre_shift, by.multiplier, by.shift,
                                          static_cast<int16_t>(by.clamp_lo), static_cast<int16_t>(by.clamp_hi));
        for (int p = 0; p < num_lanes; p++) bytes[p] = round_product(factors_of_pair(lanes_[p]), r);
    } else {
        body_.requantize(lanes_, num_lanes, by, bytes);
    }
    if (plan_.fields.curve)
        for (int p = 0; p < num_lanes; p++) bytes[p] = curve_[bytes[p]];
}

void TapsRun::chunk(Shape shape, const Group *groups, int num_groups) {
    const uint8_t *bases[2 * Group::WORDS];
    const int per_group = BASES_PER_GROUP[shape];
    for (int g = 0; g < num_groups; g++)
        for (int i = 0; i < per_group; i++)
            bases[g * per_group + i] = map_ + groups[g].bases[i] + channel_->src_shift;
    const int num_lanes = shape == SINGLE ? WORD_BYTES : num_groups * GROUP_LANES;
    const bool from_memory = plan_.fields.acc_init;
    if (plan_.fields.func != FUNC_MAX) {
        accumulate_mac(shape, bases, num_groups, num_lanes);
        if (from_memory)
            for_each_tile(groups, num_groups, [](const int32_t *memory, int32_t *lanes) {
                for (int p = 0; p < WORD_BYTES; p++) lanes[p] += memory[p];
            });
    } else {
        std::fill_n(lanes_, num_lanes, channel_->bias);
        if (from_memory)
            for_each_tile(groups, num_groups, [](const int32_t *memory, int32_t *lanes) {
                memcpy(lanes, memory, WORD_BYTES * sizeof *lanes);
            });
        accumulate_max(shape, bases, num_groups, num_lanes);
    }
    if (plan_.fields.acc_keep) {
        for_each_tile(groups, num_groups, [](int32_t *memory, const int32_t *lanes) {
            memcpy(memory, lanes, WORD_BYTES * sizeof *lanes);
        });
        return;
    }
    alignas(64) uint8_t bytes[CHUNK_LANES];
    make_bytes(num_lanes, bytes);
    for (int g = 0; g < num_groups; g++) write_back(groups[g], bytes + g * GROUP_LANES);
}

void TapsRun::channel(const Channel &channel) {
    channel_ = &channel;
    range_ = &plan_.lists[channel.list];
    list_ = {plan_.quads.data() + range_->quads,
             static_cast<int>(range_->num_unsigned),
             static_cast<int>(range_->num_signed),
             static_cast<int>(range_->num_masked_unsigned),
             static_cast<int>(range_->num_masked_signed),
             plan_.masks.data() + range_->masks,
             range_->signed_weights};
    for (int shape = 0; shape < NUM_SHAPES; shape++) {
        const std::vector<Group> &groups = plan_.groups[shape];
        const size_t most = shape == SINGLE ? 1 : 2;
        for (size_t g = 0; g < groups.size(); g += most)
            chunk(static_cast<Shape>(shape), &groups[g], static_cast<int>(std::min(most, groups.size() - g)));
    }
}

}  // namespace

void run_taps(const TapsPlan &plan, const Body &body, const uint8_t *curve, uint8_t *map, int32_t *acc) {
    TapsRun run(plan, body, curve, map, acc);
    for (const Channel &channel : plan.channels) run.channel(channel);
}

}  // namespace rasna
