#include "validate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "../hls/isa.h"
#include "../hls/targets.h"
#include "code_walk.h"
#include "failure.h"
#include "write_rule.h"

namespace rasna {
namespace {

constexpr int64_t MAP_WORDS = Target::map_words;
constexpr int64_t MAP_BYTES = MAP_WORDS * WORD_BYTES;

std::string number(int64_t value) { return std::to_string(value); }

// The highest value of base + sum of (count - 1) * step; every count is at least 1.
int64_t last_of(int64_t base, int64_t n0, int64_t step0, int64_t n1 = 1, int64_t step1 = 0, int64_t n2 = 1,
                int64_t step2 = 0) {
    return base + (n0 - 1) * step0 + (n1 - 1) * step1 + (n2 - 1) * step2;
}

// What a list reads, relative to src_base.
struct AddressSpan {
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    int last_entry = -1;  // highest entry of the offset table
};

class Validator {
  public:
    Validator(Program &program, uint64_t step_limit) : program_(program), step_limit_(step_limit) {}

    void run();

  private:
    [[noreturn]] void refuse(int code, const std::string &what) const;
    void check(int code, const char *field, int64_t given, int64_t lo, int64_t hi, int64_t record = -1) const;
    void check_span(int code, const std::string &what, int64_t lowest, int64_t highest, int64_t limit) const;
    void check_count(const char *field, int64_t given) const { check(ERROR_BAD_FIELD, field, given, 1, 65535); }
    void check_steps(uint64_t steps) const;
    void check_stripes(const char *field, int stripes_log2) const;
    void check_stream(uint64_t stream_addr, uint64_t num_words) const;
    void check_segment(int segment, bool is_load, int64_t last_addr) const;
    void check_loaded(int last_entry, int64_t record = -1) const;
    void check_destination(const Destination &to, int64_t row_first, int64_t row_limit, int64_t max_channel,
                           int64_t num_words) const;
    void check_split(const Destination &to) const;
    int64_t highest_row(const Destination &to, int64_t row_first, int64_t row_limit) const;

    void fill(const Fill &f) const;
    template <typename Transfer>
    void transfer(const Transfer &f, bool is_load) const;
    void load(const Load &f) const;
    void store(const Store &f) const;
    void table(const Table &f);
    void curve(const Curve &f);
    void move(const Move &f) const;
    void taps(const Taps &f) const;
    void taps_fields(const Taps &f) const;
    void taps_drain(const Taps &f) const;
    int64_t taps_records(const Taps &f, int64_t &max_out_channel) const;
    void taps_record(const Taps &f, const ChannelRecord &r, int64_t n, const ChannelRecord &first) const;
    AddressSpan list_span(const Taps &f, const uint64_t *words, int num_codes) const;
    void taps_sources(const Taps &f, int64_t n, int64_t src_base, const AddressSpan &span) const;

    Program &program_;
    uint64_t step_limit_;
    int64_t index_ = 0;
    int opcode_ = 0;
    TableEntry table_[Target::table_entries] = {};  // as TABLE instructions have left it
    int num_loaded_ = 0;                             // entries that some TABLE has written
    bool has_curve_ = false;                         // some CURVE comes before
};

void Validator::refuse(int code, const std::string &what) const {
    const char *name = opcode_ < NUM_OPCODES ? OPCODE_NAMES[opcode_] : "?";
    fail(code, "instruction " + number(index_) + " (" + name + "): " + what + " (" + error_text(code) + ")", index_);
}

// record: number of the channel record that the field belongs to, -1 for a field of the instruction.
void Validator::check(int code, const char *field, int64_t given, int64_t lo, int64_t hi, int64_t record) const {
    if (given >= lo && given <= hi) return;
    const std::string of_record = record < 0 ? "" : " of channel record " + number(record);
    refuse(code, field + of_record + " is " + number(given) + ", allowed are " + number(lo) + " to " + number(hi));
}

void Validator::check_span(int code, const std::string &what, int64_t lowest, int64_t highest, int64_t limit) const {
    if (lowest < 0 || highest >= limit)
        refuse(code, what + " reach from " + number(lowest) + " to " + number(highest) + ", allowed are 0 to " +
                         number(limit - 1));
}

void Validator::check_steps(uint64_t steps) const {
    if (steps > step_limit_)
        refuse(ERROR_BAD_FIELD, "its counts give " + std::to_string(steps) + " steps, allowed are at most " +
                                    std::to_string(step_limit_) + " (option step_limit)");
}

void Validator::check_stripes(const char *field, int stripes_log2) const {
    check(ERROR_BAD_FIELD, field, stripes_log2, 0, Target::slices_log2);
}

void Validator::check_stream(uint64_t stream_addr, uint64_t num_words) const {
    const uint64_t have = program_.words.size();
    if (stream_addr > have || num_words > have - stream_addr)
        refuse(ERROR_STREAM_RANGE, "stream_addr is " + std::to_string(stream_addr) + " and the stream has " +
                                       std::to_string(num_words) + " words, but the program has " +
                                       std::to_string(have));
}

void Validator::check_segment(int segment, bool is_load, int64_t last_addr) const {
    static const char *const NAMES[] = {"PROGRAM", "INPUT", "OUTPUT", "SCRATCH"};
    const int own = is_load ? SEGMENT_INPUT : SEGMENT_OUTPUT;
    if (segment != own && segment != SEGMENT_SCRATCH)
        refuse(ERROR_BAD_FIELD, "segment is " + number(segment) + " (" + NAMES[segment] + "), allowed are " +
                                    number(own) + " (" + NAMES[own] + ") and 3 (SCRATCH)");
    const uint64_t have = segment == SEGMENT_SCRATCH ? program_.scratch_words
                          : is_load                  ? program_.input_words
                                                     : program_.output_words;
    if (last_addr >= 0 && static_cast<uint64_t>(last_addr) >= have)
        refuse(ERROR_DRAM_RANGE, "its counts and steps from dram_addr on reach word " + number(last_addr) +
                                     " of the segment " + NAMES[segment] + ", which has " + std::to_string(have));
}

void Validator::check_loaded(int last_entry, int64_t record) const {
    if (last_entry < num_loaded_) return;
    const std::string what = record < 0 ? "table_entries" : "the list of channel record " + number(record);
    refuse(ERROR_TABLE_RANGE, what + " uses table entry " + number(last_entry) + ", but TABLE has loaded only " +
                                  number(num_loaded_));
}

// The highest local row that some stripe holds of the rows row_first … row_limit-1, or -1.
int64_t Validator::highest_row(const Destination &to, int64_t row_first, int64_t row_limit) const {
    const WriteRule local_rows = WriteRule::of_local_rows(to);
    int64_t highest = -1;
    for (int64_t row = row_first; row < row_limit; row++)
        for (int stripe = 0; stripe < local_rows.num_stripes(); stripe++)
            highest = std::max<int64_t>(highest, local_rows.word(stripe, static_cast<int>(row)));
    return highest;
}

// The parts of a split word lie in different banks, and the even ones in the same bank in all stripes.
void Validator::check_split(const Destination &to) const {
    if (!to.split) return;
    const auto check_parity = [this](const char *field, int given, bool odd) {
        if ((given % 2 != 0) != odd)
            refuse(ERROR_BAD_FIELD, std::string(field) + " is " + number(given) + ", required is an " +
                                        (odd ? "odd" : "even") + " number (out_split)");
    };
    check_parity("out_channel_step", to.channel_step, false);
    check_parity("out_row_step", to.row_step, false);
    check_parity("out_phase_step", to.phase_step, true);
}

// write_word for rows row_first … row_limit-1, channels 0 … max_channel, words 0 … num_words-1.
void Validator::check_destination(const Destination &to, int64_t row_first, int64_t row_limit, int64_t max_channel,
                                  int64_t num_words) const {
    if (to.circular) {
        check_count("out_height", to.height);
        check(ERROR_BAD_FIELD, "out_rows", to.rows, 0, to.height);
        check(ERROR_BAD_FIELD, "out_halo_top", to.halo_top, 0, to.height);
    }
    if (row_first >= row_limit) return;
    if (to.circular && (row_first < 0 || row_limit > to.height))
        refuse(ERROR_BAD_FIELD, "its rows with out_row " + number(to.row) + " are " + number(row_first) + " to " +
                                    number(row_limit - 1) + ", allowed are 0 to " + number(to.height - 1) +
                                    " (circular_rows)");
    if (to.local_rows == 0) return;
    const int64_t last_word = to.split ? (num_words - 1) / 2 + to.phase_step : num_words - 1;
    const int64_t rest = to.base + max_channel * to.channel_step + last_word;
    if (rest + (to.local_rows - 1) * static_cast<int64_t>(to.row_step) < MAP_WORDS) return;
    const int64_t local = highest_row(to, row_first, row_limit);
    if (local < 0) return;
    const int64_t highest = rest + local * to.row_step;
    if (highest >= MAP_WORDS)
        refuse(ERROR_MAP_RANGE, "out_base " + number(to.base) + " with channel " + number(max_channel) +
                                    " and local row " + number(local) + " writes up to word " + number(highest) +
                                    ", allowed are 0 to " + number(MAP_WORDS - 1));
}

void Validator::fill(const Fill &f) const {
    check_stripes("stripes_log2", f.stripes_log2);
    check_count("num_words", f.num_words);
    check_count("num_blocks", f.num_blocks);
    check_steps((static_cast<uint64_t>(f.num_blocks) * f.num_words) << f.stripes_log2);
    check_span(ERROR_MAP_RANGE, "the words from out_base on", f.out_base,
               last_of(f.out_base, f.num_blocks, f.block_step, f.num_words, 1), MAP_WORDS);
}

// LOAD or STORE: the counts and what they reach in the segment.
template <typename Transfer>
void Validator::transfer(const Transfer &f, bool is_load) const {
    check_count("num_channels", f.num_channels);
    check_count("num_rows", f.num_rows);
    check_count("num_words", f.num_words);
    check_segment(f.segment, is_load,
                  last_of(f.dram_addr, f.num_channels, f.dram_channel_step, f.num_rows, f.dram_row_step, f.num_words, 1));
    check_steps(static_cast<uint64_t>(f.num_channels) * f.num_rows * f.num_words);
}

void Validator::load(const Load &f) const {
    check_stripes("out_stripes_log2", f.out_stripes_log2);
    check(ERROR_BAD_FIELD, "last_lanes", f.last_lanes, 1, WORD_BYTES);
    check_split(destination_of(f));
    transfer(f, true);
    check_destination(destination_of(f), f.out_row, f.out_row + f.num_rows, f.num_channels - 1, f.num_words);
}

void Validator::store(const Store &f) const {
    check_stripes("stripes_log2", f.stripes_log2);
    check_count("src_rows", f.src_rows);
    transfer(f, false);
    check(ERROR_BAD_FIELD, "num_rows", f.num_rows, 1, static_cast<int64_t>(f.src_rows) << f.stripes_log2);
    const int64_t num_local = std::min(f.num_rows, f.src_rows) + f.src_halo_top;
    check_span(ERROR_MAP_RANGE, "the words from src_base on", f.src_base,
               last_of(f.src_base, f.num_channels, f.src_channel_step, num_local, f.src_row_step, f.num_words, 1),
               MAP_WORDS);
}

void Validator::table(const Table &f) {
    check(ERROR_TABLE_RANGE, "num_entries", f.num_entries, 1, Target::table_entries);
    check_stream(f.stream_addr, f.num_entries);
    for (int i = 0; i < f.num_entries; i++) table_[i] = decode_table_entry(&program_.words[f.stream_addr + i]);
    num_loaded_ = std::max<int>(num_loaded_, f.num_entries);
}

void Validator::curve(const Curve &f) {
    check_stream(f.stream_addr, CURVE_WORDS);
    has_curve_ = true;
}

void Validator::move(const Move &f) const {
    check_stripes("stripes_log2", f.stripes_log2);
    check_count("num_channels", f.num_channels);
    check_count("num_rows", f.num_rows);
    check_count("num_words", f.num_words);
    check(ERROR_TABLE_RANGE, "table_entries", f.table_entries, 1, Target::table_entries);
    check_loaded(f.table_entries - 1);
    if (!table_[f.table_entries - 1].last)
        refuse(ERROR_BAD_FIELD, "last of table entry " + number(f.table_entries - 1) + " is 0, required is 1");
    const uint64_t words = static_cast<uint64_t>(f.num_channels) * f.num_rows * f.num_words;
    check_steps((words * f.table_entries) << f.stripes_log2);
    const int64_t src_end = last_of(f.src_base, f.num_channels, f.src_channel_step, f.num_rows, f.src_row_step,
                                    f.num_words, f.src_word_step);
    const int64_t out_end = last_of(f.out_base, f.num_channels, f.out_channel_step, f.num_rows, f.out_row_step,
                                    f.num_words, f.out_word_step);
    for (int i = 0; i < f.table_entries; i++) {
        const TableEntry &e = table_[i];
        const std::string entry = "of table entry " + number(i);
        check_span(ERROR_MAP_RANGE, "the bytes " + entry + " (offset " + number(e.offset) + ")", f.src_base + e.offset,
                   src_end + e.offset + WORD_BYTES - 1, MAP_BYTES);
        if (e.last)
            check_span(ERROR_MAP_RANGE, "the words " + entry + " (out_offset " + number(e.out_offset) + ")",
                       f.out_base + e.out_offset, out_end + e.out_offset, MAP_WORDS);
    }
}

void Validator::taps_fields(const Taps &f) const {
    check_stripes("stripes_log2", f.stripes_log2);
    check_stripes("out_stripes_log2", f.out_stripes_log2);
    check(ERROR_BAD_FIELD, "func", f.func, 0, NUM_FUNCS - 1);
    if (f.func == FUNC_PRODUCT) {
        check(ERROR_BAD_FIELD, "acc_init of a PRODUCT", f.acc_init, 0, 0);
        check(ERROR_BAD_FIELD, "acc_keep of a PRODUCT", f.acc_keep, 0, 0);
    }
    if (f.curve && !has_curve_) refuse(ERROR_BAD_FIELD, "curve is 1, but no CURVE comes before");
    check(ERROR_BAD_FIELD, "ib", f.ib, 12, 24);
    check(ERROR_BAD_FIELD, "last_lanes", f.last_lanes, 1, WORD_BYTES);
    if (f.clamp_lo > f.clamp_hi)
        refuse(ERROR_BAD_FIELD, "clamp_lo is " + number(f.clamp_lo) + ", allowed is at most clamp_hi, " +
                                    number(f.clamp_hi));
    check(ERROR_TABLE_RANGE, "table_entries", f.table_entries, MIN_TABLE_ENTRIES, Target::table_entries);
    check_count("num_channels", f.num_channels);
    check_count("tile_rows", f.tile_rows);
    check_count("tile_words", f.tile_words);
    check(ERROR_BAD_FIELD, "tile_rows * tile_words", static_cast<int64_t>(f.tile_rows) * f.tile_words, 1, MAX_TILES);
    check_split(destination_of(f));
    check_stream(f.stream_addr, f.stream_words);
}

// Fields of record n and the length of its list.
void Validator::taps_record(const Taps &f, const ChannelRecord &r, int64_t n, const ChannelRecord &first) const {
    check(ERROR_BAD_FIELD, "multiplier", r.multiplier, 1, 32767, n);
    check(ERROR_BAD_FIELD, "shift", r.shift, 1, 31, n);
    check(ERROR_BAD_FIELD, "pre_shift", r.pre_shift, 0, 31, n);
    if (f.func == FUNC_PRODUCT) check(ERROR_BAD_FIELD, "bias of a PRODUCT", r.bias, 0, 0, n);
    const bool shares = f.list_shared && n > 0;
    if (shares) check(ERROR_STREAM_RANGE, "num_codes", r.num_codes, first.num_codes, first.num_codes, n);
    const int64_t per_word = f.encoding == ENCODING_DENSE ? DENSE_CODES_PER_WORD : SPARSE_CODES_PER_WORD;
    const int64_t words = shares ? 0 : (r.num_codes + per_word - 1) / per_word;
    check(ERROR_STREAM_RANGE, "list_words", r.list_words, words, words, n);
    check(ERROR_LIST_RANGE, "list_words", r.list_words, 0, Target::list_words, n);
}

AddressSpan Validator::list_span(const Taps &f, const uint64_t *words, int num_codes) const {
    AddressSpan span;
    const ListFormat format = {f.encoding, table_, f.table_entries, f.group_step};
    walk_codes(words, num_codes, format, [&](int8_t, int entry, int64_t address) {
        span.lowest = std::min(span.lowest, address);
        span.highest = std::max(span.highest, address);
        span.last_entry = std::max(span.last_entry, entry);
    });
    return span;
}

// The vectors of every tap of channel n, in all rows and words, lie inside the map.
void Validator::taps_sources(const Taps &f, int64_t n, int64_t src_base, const AddressSpan &span) const {
    if (span.last_entry < 0) return;
    check_loaded(span.last_entry, n);
    const int64_t reach = last_of(0, f.tile_rows, f.src_row_step, f.tile_words, f.src_word_step);
    const int64_t lowest = src_base + span.lowest, highest = src_base + span.highest + reach + WORD_BYTES - 1;
    if (lowest >= 0 && highest < MAP_BYTES) return;
    check_span(ERROR_MAP_RANGE, "the bytes that the taps of channel record " + number(n) + " read (src_base " +
                                    number(src_base) + ")",
               lowest, highest, MAP_BYTES);
}

// Walks all records and lists; returns the number of codes of all channels together.
int64_t Validator::taps_records(const Taps &f, int64_t &max_out_channel) const {
    const uint64_t *words = program_.words.data() + f.stream_addr;
    uint64_t at = 0;
    int64_t num_codes = 0;
    ChannelRecord first = {};
    AddressSpan span = {};
    for (int64_t n = 0; n < f.num_channels; n++) {
        if (f.stream_words - at < CHANNEL_RECORD_WORDS)
            refuse(ERROR_STREAM_RANGE, "stream_words is " + number(f.stream_words) + ", but channel record " +
                                           number(n) + " would end at word " + number(at + CHANNEL_RECORD_WORDS));
        const ChannelRecord r = decode_channel_record(words + at);
        at += CHANNEL_RECORD_WORDS;
        if (n == 0) first = r;
        taps_record(f, r, n, first);
        if (f.stream_words - at < r.list_words)
            refuse(ERROR_STREAM_RANGE, "stream_words is " + number(f.stream_words) + ", but the list of channel record " +
                                           number(n) + " would end at word " + number(at + r.list_words));
        if (n == 0 || !f.list_shared) span = list_span(f, words + at, r.num_codes);
        taps_sources(f, n, r.src_base, span);
        at += r.list_words;
        num_codes += r.num_codes;
        max_out_channel = std::max<int64_t>(max_out_channel, r.out_channel);
    }
    if (at != f.stream_words)
        refuse(ERROR_STREAM_RANGE, "stream_words is " + number(f.stream_words) + ", but its " + number(f.num_channels) +
                                       " channel records and their lists have " + number(at) + " words");
    return num_codes;
}

// No slice has to store two of the words that leave at the same time.
void Validator::taps_drain(const Taps &f) const {
    check(ERROR_BAD_FIELD, "drain_log2", f.drain_log2, 0, std::min<int>(Target::drain_words_log2, f.stripes_log2));
    if (f.drain_log2 == 0 || f.acc_keep) return;
    const WriteRule rows = WriteRule::of_local_rows(destination_of(f));
    const int64_t num_rows = static_cast<int64_t>(f.tile_rows) << f.stripes_log2, part = num_rows >> f.drain_log2;
    for (int stripe = 0; stripe < rows.num_stripes(); stripe++)
        for (int64_t first = 0; first < part; first++) {
            int64_t stored = -1;
            for (int64_t row = first; row < num_rows; row += part) {
                if (row < f.row_first || row >= f.row_limit) continue;
                if (rows.word(stripe, static_cast<int>(row) + f.out_row) < 0) continue;
                if (stored >= 0)
                    refuse(ERROR_BAD_FIELD, "drain_log2 is " + number(f.drain_log2) + ": rows " + number(stored) + " and " +
                                                number(row) + " are drained together, and stripe " + number(stripe) +
                                                " stores both");
                stored = row;
            }
        }
}

void Validator::taps(const Taps &f) const {
    taps_fields(f);
    int64_t max_out_channel = 0;
    const int64_t num_codes = taps_records(f, max_out_channel);
    const int64_t tiles = static_cast<int64_t>(f.tile_rows) * f.tile_words;
    check_steps(static_cast<uint64_t>(num_codes + f.num_channels) * tiles << f.stripes_log2);
    if (f.acc_init || f.acc_keep) {
        const int64_t copies = Target::slices >> f.stripes_log2;
        const int64_t rounds = (f.num_channels + copies - 1) / copies;
        check_span(ERROR_ACC_RANGE, "the accumulators from acc_base on", f.acc_base, f.acc_base + rounds * tiles - 1,
                   Target::acc_tiles);
    }
    if (f.acc_keep) {
        taps_drain(f);
        return;
    }
    const int64_t rows = static_cast<int64_t>(f.tile_rows) << f.stripes_log2;
    check_destination(destination_of(f), f.row_first + f.out_row, std::min<int64_t>(rows, f.row_limit) + f.out_row,
                      max_out_channel, f.tile_words);
    taps_drain(f);
}

void Validator::run() {
    const uint64_t num_words = program_.words.size();
    for (index_ = 0;; index_++) {
        const uint64_t at = static_cast<uint64_t>(index_) * INSTRUCTION_WORDS;
        if (at + INSTRUCTION_WORDS > num_words)
            fail(ERROR_NO_END,
                 "the program of " + std::to_string(num_words) + " words has no END among its " + number(index_) +
                     " instructions; END must be the last",
                 index_);
        const uint64_t *words = &program_.words[at];
        opcode_ = static_cast<int>(words[0] & 0xff);
        switch (opcode_) {
            case OPCODE_END: program_.num_instructions = index_ + 1; return;
            case OPCODE_FILL: fill(decode_fill(words)); break;
            case OPCODE_LOAD: load(decode_load(words)); break;
            case OPCODE_STORE: store(decode_store(words)); break;
            case OPCODE_TABLE: table(decode_table(words)); break;
            case OPCODE_TAPS: taps(decode_taps(words)); break;
            case OPCODE_MOVE: move(decode_move(words)); break;
            case OPCODE_CURVE: curve(decode_curve(words)); break;
            default: check(ERROR_BAD_OPCODE, "opcode", opcode_, 0, NUM_OPCODES - 1);
        }
    }
}

}  // namespace

void validate(Program &program, uint64_t step_limit) { Validator(program, step_limit).run(); }

}  // namespace rasna
