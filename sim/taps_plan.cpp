#include "taps_plan.h"

#include <algorithm>

#include "code_walk.h"
#include "quads.h"
#include "write_rule.h"

namespace rasna {
namespace {

// ---- groups of tiles ------------------------------------------------------------------------------------------------

// One tile of 8 lanes.
struct Word {
    uint32_t base, tile;
    uint32_t row;  // of all rows of all stripes: stripe * tile_rows + y
    uint32_t x;
};

class Grouper {
  public:
    explicit Grouper(TapsPlan &plan) : plan_(plan), f_(plan.fields), rule_(destination_of(plan.fields)) {}

    void run() {
        for (int stripe = 0; stripe < 1 << f_.stripes_log2; stripe++) {
            collect(stripe);
            split_into_runs();
        }
        flush(ROW_2, halves_);
        flush_singles();
    }

  private:
    void collect(int stripe);
    void split_into_runs();
    void add_run(const Word *words, size_t num_words);
    void add_group(Shape shape, const Word *words, int num_words);
    void flush(Shape shape, std::vector<Word> &words);
    void flush_singles();
    void add_copies(const Word *words, int num_words);

    TapsPlan &plan_;
    const Taps &f_;
    const WriteRule rule_;
    std::vector<Word> stripe_;           // words of the stripe at hand
    std::vector<Word> halves_, singles_;  // pairs of words and words that are not in a group yet
};

// The words of a stripe that are needed at all, in order.
void Grouper::collect(int stripe) {
    stripe_.clear();
    const size_t slice = first_copy<Target>(stripe, f_.stripes_log2);
    for (uint32_t y = 0; y < f_.tile_rows; y++) {
        const uint32_t row = static_cast<uint32_t>(stripe) * f_.tile_rows + y;
        if (!f_.acc_keep && (row < f_.row_first || row >= f_.row_limit)) continue;
        for (uint32_t x = 0; x < f_.tile_words; x++)
            stripe_.push_back({static_cast<uint32_t>(slice * SLICE_STRIDE + y * f_.src_row_step + x * f_.src_word_step),
                               static_cast<uint32_t>(slice) * Target::acc_tiles + y * f_.tile_words + x, row, x});
    }
}

void Grouper::split_into_runs() {
    for (size_t begin = 0, end; begin < stripe_.size(); begin = end) {
        for (end = begin + 1; end < stripe_.size() && stripe_[end].base == stripe_[end - 1].base + WORD_BYTES;) end++;
        add_run(&stripe_[begin], end - begin);
    }
}

// Words whose sources are consecutive: whole groups, and what is left over for groups with words of other runs.
void Grouper::add_run(const Word *words, size_t num_words) {
    for (; num_words >= 3; words += 4) {
        const size_t taken = std::min<size_t>(num_words, Group::WORDS);
        add_group(ROW_4, words, static_cast<int>(taken));
        num_words -= taken;
        if (num_words == 0) return;
    }
    std::vector<Word> &left = num_words == 2 ? halves_ : singles_;
    left.insert(left.end(), words, words + num_words);
}

void Grouper::flush(Shape shape, std::vector<Word> &words) {
    for (size_t i = 0; i < words.size(); i += Group::WORDS)
        add_group(shape, &words[i], static_cast<int>(std::min<size_t>(words.size() - i, Group::WORDS)));
}

// A lone word at the end is cheaper by itself than in a group of four.
void Grouper::flush_singles() {
    const bool has_lone = singles_.size() % Group::WORDS == 1;
    const Word lone = has_lone ? singles_.back() : Word{};
    if (has_lone) singles_.pop_back();
    flush(ROW_1, singles_);
    if (has_lone) add_group(SINGLE, &lone, 1);
}

void Grouper::add_group(Shape shape, const Word *words, int num_words) {
    Group group = {};
    const int step = shape == SINGLE ? 1 : Group::WORDS / BASES_PER_GROUP[shape];
    for (int i = 0; i < BASES_PER_GROUP[shape]; i++)
        group.bases[i] = words[i * step < num_words ? i * step : 0].base;
    for (int i = 0; i < Group::WORDS; i++) group.tiles[i] = i < num_words ? words[i].tile : Group::NO_TILE;
    for (int i = 0; i < num_words; i++)
        if (words[i].x + 1 == f_.tile_words && f_.last_lanes < WORD_BYTES) group.last_words |= 1 << i;
    group.copies_begin = static_cast<uint32_t>(plan_.copies.size());
    if (!f_.acc_keep) add_copies(words, num_words);
    group.copies_end = static_cast<uint32_t>(plan_.copies.size());
    plan_.groups[shape].push_back(group);
}

void Grouper::add_copies(const Word *words, int num_words) {
    for (int begin = 0, end; begin < num_words; begin = end) {
        for (end = begin + 1; end < num_words && words[end].row == words[begin].row &&
                              words[end].x == words[end - 1].x + 1;)
            end++;
        for (int stripe = 0; stripe < rule_.num_stripes(); stripe++) {
            const int row = rule_.word(stripe, static_cast<int>(words[begin].row) + f_.out_row);
            if (row < 0) continue;
            const size_t word_bytes = f_.out_split ? WORD_BYTES / 2 : WORD_BYTES;
            const size_t to = static_cast<size_t>(row) * WORD_BYTES + words[begin].x * word_bytes;
            const size_t slice = first_copy<Target>(stripe, f_.out_stripes_log2);
            plan_.copies.push_back({static_cast<uint32_t>(slice * SLICE_STRIDE + to),
                                    static_cast<uint8_t>(begin), static_cast<uint8_t>(end - begin)});
        }
    }
}

// ---- tap lists ------------------------------------------------------------------------------------------------------

class ListDecoder {
  public:
    ListDecoder(TapsPlan &plan, const TableEntry *table, bool wants_pairs)
        : plan_(plan),
          table_(table),
          format_{plan.fields.encoding, table, plan.fields.table_entries, plan.fields.group_step},
          builder_(wants_pairs) {
        for (Kind &kind : kinds_) kind.taps.resize(MAX_CODES);
    }

    ListRange decode(const uint64_t *words, const ChannelRecord &record);

  private:
    static constexpr size_t MAX_CODES = Target::list_words * DENSE_CODES_PER_WORD;

    // Taps that are treated alike.
    struct Kind {
        std::vector<Tap> taps;  // MAX_CODES, of which num_taps are in use
        size_t num_taps = 0;
    };

    Kind &kind(bool is_signed, bool is_masked) { return kinds_[2 * is_masked + is_signed]; }
    void collect(const uint64_t *words, const ChannelRecord &record);
    uint32_t add_quads(bool is_signed, bool is_masked);
    ListRange add_mac();
    ListRange add_max();

    TapsPlan &plan_;
    const TableEntry *table_;
    ListFormat format_;
    QuadBuilder builder_;
    Kind kinds_[4];
};

// Taps with weight 0 do nothing, neither in MAC nor in MAX; nor do taps without lanes.
void ListDecoder::collect(const uint64_t *words, const ChannelRecord &record) {
    for (Kind &kind : kinds_) kind.num_taps = 0;
    walk_codes(words, record.num_codes, format_, [&](int8_t weight, int entry, int64_t address) {
        const TableEntry &e = table_[entry];
        Kind &of_tap = kind(e.is_signed, e.lane_mask != 0xff);
        of_tap.taps[of_tap.num_taps] = {static_cast<uint16_t>(record.src_base + address), weight, e.lane_mask};
        of_tap.num_taps += weight != 0 && e.lane_mask != 0;
    });
}

uint32_t ListDecoder::add_quads(bool is_signed, bool is_masked) {
    Kind &of_taps = kind(is_signed, is_masked);
    return builder_.append(of_taps.taps.data(), of_taps.num_taps, is_signed, plan_.quads,
                           is_masked ? &plan_.masks : nullptr);
}

ListRange ListDecoder::add_mac() {
    ListRange list;
    list.quads = static_cast<uint32_t>(plan_.quads.size());
    list.masks = static_cast<uint32_t>(plan_.masks.size());
    list.num_unsigned = add_quads(false, false);
    list.num_signed = add_quads(true, false);
    list.num_masked_unsigned = add_quads(false, true);
    list.num_masked_signed = add_quads(true, true);
    for (const bool is_masked : {false, true})
        for (size_t i = 0; i < kind(true, is_masked).num_taps; i++)
            list.signed_weights += kind(true, is_masked).taps[i].weight;
    return list;
}

ListRange ListDecoder::add_max() {
    ListRange list;
    list.max_taps = static_cast<uint32_t>(plan_.max_taps.size());
    uint32_t counts[2] = {};
    uint8_t lanes[2] = {};
    for (const bool is_signed : {false, true})
        for (const bool is_masked : {false, true})
            for (size_t i = 0; i < kind(is_signed, is_masked).num_taps; i++) {
                const Tap &tap = kind(is_signed, is_masked).taps[i];
                plan_.max_taps.push_back({tap.address, tap.lane_mask});
                counts[is_signed]++;
                lanes[is_signed] |= tap.lane_mask;
            }
    list.num_max_unsigned = counts[0];
    list.num_max_signed = counts[1];
    list.unsigned_lanes = lanes[0];
    list.signed_lanes = lanes[1];
    return list;
}

ListRange ListDecoder::decode(const uint64_t *words, const ChannelRecord &record) {
    collect(words, record);
    return plan_.fields.func == FUNC_MAX ? add_max() : add_mac();
}

Channel channel_of(const Taps &f, const ChannelRecord &r, uint32_t n, uint16_t list_src_base) {
    const uint32_t copies = Target::slices >> f.stripes_log2;
    Channel channel = {};
    channel.bias = r.bias;
    channel.src_shift = r.src_base - list_src_base;
    channel.to = static_cast<uint32_t>(r.out_channel) * f.out_channel_step * WORD_BYTES;
    channel.tile = n % copies * Target::acc_tiles + f.acc_base + n / copies * f.tile_rows * f.tile_words;
    channel.requant = {r.pre_shift, r.multiplier, r.shift, f.ib, f.clamp_lo, f.clamp_hi};
    return channel;
}

}  // namespace

TapsPlan::TapsPlan(const Taps &f, const uint64_t *words, const TableEntry *table, bool wants_pairs) : fields(f) {
    Grouper(*this).run();
    // 8 codes per word at most. What is not used stays reserved: pages that are never touched cost nothing.
    if (f.func != FUNC_MAX) quads.reserve(static_cast<size_t>(f.stream_words) * DENSE_CODES_PER_WORD / 4);
    ListDecoder decoder(*this, table, wants_pairs);
    const uint64_t *at = words + f.stream_addr;
    uint16_t list_src_base = 0;
    channels.reserve(f.num_channels);
    lists.reserve(f.list_shared ? 1 : f.num_channels);
    for (uint32_t n = 0; n < f.num_channels; n++) {
        const ChannelRecord record = decode_channel_record(at);
        at += CHANNEL_RECORD_WORDS;
        if (n == 0 || !f.list_shared) {
            list_src_base = record.src_base;
            lists.push_back(decoder.decode(at, record));
        }
        channels.push_back(channel_of(f, record, n, list_src_base));
        channels.back().list = static_cast<uint32_t>(lists.size() - 1);
        at += record.list_words;
    }
    for (int last_words = 0; last_words < 1 << Group::WORDS; last_words++)
        for (int i = 0; i < Group::WORDS; i++) {
            const uint8_t valid = last_words >> i & 1 ? static_cast<uint8_t>((1 << f.last_lanes) - 1) : 0xff;
            keep[last_words][i] = LANE_BYTES[valid];
            replace[last_words][i] = ~LANE_BYTES[valid] & (0x0101010101010101ull * f.fill);
        }
}

size_t TapsPlan::num_bytes() const {
    size_t bytes = sizeof *this + copies.capacity() * sizeof(Copy) + channels.capacity() * sizeof(Channel) +
                   lists.capacity() * sizeof(ListRange) + quads.size() * sizeof(Quad) + masks.capacity() +
                   max_taps.capacity() * sizeof(MaxTap);
    for (const auto &of_shape : groups) bytes += of_shape.capacity() * sizeof(Group);
    return bytes;
}

}  // namespace rasna
