#include "fast_machine.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "failure.h"
#include "write_rule.h"

namespace rasna {
namespace {

// Loads of whole groups may start in the last word of a map, or in a word of a list that is shifted by src_base.
constexpr size_t MAP_BYTES = Target::slices * SLICE_STRIDE;

constexpr uint64_t ONES = 0x0101010101010101ull;

std::string supported_bodies() {
    std::string names;
    for (const Body *const *body = ALL_BODIES; *body; body++)
        if ((*body)->is_supported()) names += (names.empty() ? "" : " ") + std::string((*body)->name);
    return names;
}

// name "": the fastest that this processor can run.
const Body &find_body(const std::string &name) {
    for (const Body *const *body = ALL_BODIES; *body; body++) {
        if (!name.empty() && name != (*body)->name) continue;
        if ((*body)->is_supported()) return **body;
    }
    fail(ERROR_BAD_ARGUMENT, "the loops \"" + name + "\" (RASNA_BODY, option body) do not run on this processor; allowed are " +
                                 supported_bodies());
}

}  // namespace

const char *const MACHINE_KIND = "functional";

std::unique_ptr<Machine> make_machine(const std::string &body) {
    return std::unique_ptr<Machine>(new FastMachine(find_body(body)));
}

FastMachine::FastMachine(const Body &body)
    : body_(&body),
      map_(new uint8_t[MAP_BYTES]()),
      acc_(new int32_t[static_cast<size_t>(Target::slices) * Target::acc_tiles * WORD_BYTES]()) {}

void FastMachine::load(const Program &program) {
    program_ = &program;
    build_plans();
}

void FastMachine::build_plans() {
    steps_.clear();
    uint64_t num_bytes = 0;
    for (int64_t i = 0; i + 1 < program_->num_instructions; i++) {
        Step step;
        step.words = program_->words.data() + i * INSTRUCTION_WORDS;
        if (step.words[0] % 256 == OPCODE_TABLE) set_table(decode_table(step.words));
        if (step.words[0] % 256 == OPCODE_TAPS && num_bytes < cache_bytes_) {
            step.plan.reset(new TapsPlan(decode_taps(step.words), program_->words.data(), table_, body_->wants_pairs));
            num_bytes += step.plan->num_bytes();
            if (num_bytes > cache_bytes_) step.plan.reset();
        }
        steps_.push_back(std::move(step));
    }
}

void FastMachine::run(const Segments &segments, int64_t stop_at) {
    size_t count = steps_.size();
    if (stop_at >= 0) count = std::min(count, static_cast<size_t>(stop_at));
    for (size_t i = 0; i < count; i++) execute(steps_[i], segments);
}

void FastMachine::execute(const Step &step, const Segments &segments) {
    switch (step.words[0] & 0xff) {
        case OPCODE_FILL: fill(decode_fill(step.words)); break;
        case OPCODE_LOAD: {
            const Load f = decode_load(step.words);
            load_rows(f, f.segment == SEGMENT_INPUT ? segments.input : segments.scratch);
            break;
        }
        case OPCODE_STORE: {
            const Store f = decode_store(step.words);
            store_rows(f, f.segment == SEGMENT_OUTPUT ? segments.output : segments.scratch);
            break;
        }
        case OPCODE_TABLE: set_table(decode_table(step.words)); break;
        case OPCODE_TAPS:
            if (step.plan)
                taps(*step.plan);
            else
                taps(TapsPlan(decode_taps(step.words), program_->words.data(), table_, body_->wants_pairs));
            break;
        case OPCODE_MOVE: move(decode_move(step.words)); break;
        case OPCODE_CURVE:
            memcpy(curve_, program_->words.data() + decode_curve(step.words).stream_addr, sizeof curve_);
            break;
        default: fail(ERROR_BAD_OPCODE, "an opcode that validation should have refused");
    }
}

uint8_t *FastMachine::slice_of(int stripe, int stripes_log2) const {
    return map_.get() + first_copy<Target>(stripe, stripes_log2) * SLICE_STRIDE;
}

void FastMachine::fill(const Fill &f) {
    for (int stripe = 0; stripe < 1 << f.stripes_log2; stripe++)
        for (int block = 0; block < f.num_blocks; block++)
            memset(slice_of(stripe, f.stripes_log2) + (f.out_base + block * f.block_step) * WORD_BYTES, f.fill,
                   static_cast<size_t>(f.num_words) * WORD_BYTES);
}

void FastMachine::load_rows(const Load &f, const uint64_t *segment) {
    const WriteRule rule(destination_of(f));
    const uint64_t keep = LANE_BYTES[(1 << f.last_lanes) - 1];
    const uint64_t filler = ~keep & (ONES * f.fill);
    const size_t row_bytes = static_cast<size_t>(f.num_words) * WORD_BYTES;
    const size_t odd = static_cast<size_t>(f.out_phase_step) * WORD_BYTES;
    for (int y = 0; y < f.num_rows; y++)
        for (int stripe = 0; stripe < rule.num_stripes(); stripe++) {
            const int word = rule.word(stripe, y + f.out_row);
            if (word < 0) continue;
            uint8_t *into = slice_of(stripe, f.out_stripes_log2) + static_cast<size_t>(word) * WORD_BYTES;
            const uint64_t *from = segment + f.dram_addr + static_cast<size_t>(y) * f.dram_row_step;
            for (int c = 0; c < f.num_channels; c++) {
                const uint64_t last = (from[f.num_words - 1] & keep) | filler;
                if (f.out_split) {
                    for (int x = 0; x < f.num_words; x++)
                        write_split_word(into + x * (WORD_BYTES / 2), odd, x + 1 < f.num_words ? from[x] : last);
                } else {
                    memcpy(into, from, row_bytes);
                    memcpy(into + row_bytes - WORD_BYTES, &last, WORD_BYTES);
                }
                into += static_cast<size_t>(f.out_channel_step) * WORD_BYTES;
                from += f.dram_channel_step;
            }
        }
}

void FastMachine::store_rows(const Store &f, uint64_t *segment) {
    const size_t row_bytes = static_cast<size_t>(f.num_words) * WORD_BYTES;
    for (int c = 0; c < f.num_channels; c++) {
        const int channel = f.src_base + c * f.src_channel_step + f.src_halo_top * f.src_row_step;
        uint64_t *into = segment + f.dram_addr + static_cast<size_t>(c) * f.dram_channel_step;
        int stripe = 0, local = 0;
        for (int y = 0; y < f.num_rows; y++, into += f.dram_row_step) {
            memcpy(into, slice_of(stripe, f.stripes_log2) + (channel + local * f.src_row_step) * WORD_BYTES, row_bytes);
            if (++local == f.src_rows) {
                local = 0;
                stripe++;
            }
        }
    }
}

void FastMachine::set_table(const Table &f) {
    for (int i = 0; i < f.num_entries; i++) table_[i] = decode_table_entry(&program_->words[f.stream_addr + i]);
}

void FastMachine::move(const Move &f) {
    struct Part {
        int32_t offset, out_offset;  // bytes
        uint64_t lanes;
        bool last;
    } parts[Target::table_entries];
    for (int i = 0; i < f.table_entries; i++) {
        const TableEntry &e = table_[i];
        parts[i] = {e.offset, e.out_offset * WORD_BYTES, LANE_BYTES[e.lane_mask], e.last != 0};
    }
    const uint64_t filler = ONES * f.fill;
    for (int stripe = 0; stripe < 1 << f.stripes_log2; stripe++)
        for (int c = 0; c < f.num_channels; c++)
            for (int y = 0; y < f.num_rows; y++) {
                uint8_t *const slice = slice_of(stripe, f.stripes_log2);
                const uint8_t *from = slice + f.src_base + c * f.src_channel_step + y * f.src_row_step;
                uint8_t *into = slice + (f.out_base + c * f.out_channel_step + y * f.out_row_step) * WORD_BYTES;
                for (int x = 0; x < f.num_words; x++) {
                    uint64_t word = filler;
                    for (int i = 0; i < f.table_entries; i++) {
                        uint64_t vector;
                        memcpy(&vector, from + parts[i].offset, WORD_BYTES);
                        word = (word & ~parts[i].lanes) | (vector & parts[i].lanes);
                        if (!parts[i].last) continue;
                        memcpy(into + parts[i].out_offset, &word, WORD_BYTES);
                        word = filler;
                    }
                    from += f.src_word_step;
                    into += f.out_word_step * WORD_BYTES;
                }
            }
}

void FastMachine::taps(const TapsPlan &plan) { run_taps(plan, *body_, curve_, map_.get(), acc_.get()); }

uint64_t FastMachine::map_word(uint32_t slice, uint32_t word) const {
    uint64_t value;
    memcpy(&value, map_.get() + slice * SLICE_STRIDE + word * WORD_BYTES, WORD_BYTES);
    return value;
}

bool FastMachine::set_option(const std::string &name, const std::string &value) {
    if (name == "body") {
        body_ = &find_body(value);
    } else if (name == "cache_bytes") {
        char *end = nullptr;
        const unsigned long long bytes = strtoull(value.c_str(), &end, 10);
        if (value.empty() || *end != 0 || value[0] == '-')
            fail(ERROR_BAD_ARGUMENT, "option cache_bytes is \"" + value + "\", allowed is a number from 0 on");
        cache_bytes_ = bytes;
    } else {
        return false;
    }
    if (program_) build_plans();
    return true;
}

bool FastMachine::get_option(const std::string &name, std::string &value) const {
    if (name == "body")
        value = body_->name;
    else if (name == "bodies")
        value = supported_bodies();
    else if (name == "cache_bytes")
        value = std::to_string(cache_bytes_);
    else
        return false;
    return true;
}

}  // namespace rasna
