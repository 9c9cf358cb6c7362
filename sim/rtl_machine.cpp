// The verilated machine: a validated program on the RTL, through its registers and memory ports as on a board.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memory>

#include "../hls/targets.h"
#include "failure.h"
#include "machine.h"
#include "rtl_constants.h"
#include "rtl_model.h"

namespace rasna {
namespace {

constexpr uint64_t FIRST_ADDRESS = 0x100000, GAP_BYTES = 4096 + 40, WINDOW_BYTES = uint64_t{1} << 35;

struct Option {
    const char *name;
    uint64_t lo, hi;
};

// Values in the order of RtlMachine::values_.
constexpr Option OPTIONS[] = {
    {"latency", 1, 2000},          {"stall_seed", 0, UINT32_MAX}, {"stall_percent", 1, 95},
    {"timeout_cycles", 1, 1ull << 62}, {"bus_error_at", 0, UINT32_MAX}, {"bus_hang_at", 0, UINT32_MAX},
};
enum { LATENCY, STALL_SEED, STALL_PERCENT, TIMEOUT_CYCLES, BUS_ERROR_AT, BUS_HANG_AT, NUM_OPTIONS };

class RtlMachine : public Machine {
  public:
    void load(const Program &program) override {
        program_ = &program;
        shortened_.clear();
    }

    void run(const Segments &segments, int64_t stop_at) override {
        map_.clear();
        const std::vector<uint64_t> &words = program_words(stop_at);
        cycles_.assign(static_cast<size_t>(program_->num_instructions), 0);
        bus_.options = {static_cast<uint32_t>(values_[LATENCY]), values_[STALL_SEED],
                        static_cast<uint32_t>(values_[STALL_PERCENT]), values_[BUS_ERROR_AT], values_[BUS_HANG_AT]};
        execute(words, segments, program_->input_words, program_->output_words, program_->scratch_words);
        if (stop_at >= 0 && stop_at < program_->num_instructions) cycles_.resize(static_cast<size_t>(stop_at) + 1);
    }

    // The map memory is read by a STORE of all of it, so that nothing depends on names inside the RTL.
    uint64_t map_word(uint32_t slice, uint32_t word) const override { return dumped_map()[slice * Target::map_words + word]; }

    const std::vector<uint64_t> &cycles() const override { return cycles_; }

    bool set_option(const std::string &name, const std::string &value) override {
        const int index = option_index(name);
        if (index < 0) return false;
        char *end = nullptr;
        errno = 0;
        const unsigned long long number = strtoull(value.c_str(), &end, 10);
        const Option &option = OPTIONS[index];
        if (value.empty() || value[0] == '-' || *end || errno || number < option.lo || number > option.hi)
            fail(ERROR_BAD_ARGUMENT, "option " + name + " is \"" + value + "\", allowed are " +
                                         std::to_string(option.lo) + " to " + std::to_string(option.hi));
        values_[index] = number;
        if (index == STALL_SEED) model_.reset();  // the registers' initial values follow it
        return true;
    }
    bool get_option(const std::string &name, std::string &value) const override {
        const int index = option_index(name);
        if (index >= 0) value = std::to_string(values_[index]);
        return index >= 0;
    }
    const char *option_names() const override {
        return ", latency, stall_seed, stall_percent, timeout_cycles, bus_error_at, bus_hang_at";
    }

  private:
    static int option_index(const std::string &name) {
        for (int i = 0; i < NUM_OPTIONS; i++)
            if (name == OPTIONS[i].name) return i;
        return -1;
    }

    // The program, or a copy with END at stop_at.
    const std::vector<uint64_t> &program_words(int64_t stop_at) {
        if (stop_at < 0 || stop_at >= program_->num_instructions) return program_->words;
        shortened_ = program_->words;
        memset(&shortened_[stop_at * INSTRUCTION_WORDS], 0, INSTRUCTION_WORDS * sizeof(uint64_t));
        static_assert(OPCODE_END == 0, "an instruction of zeros is END");
        return shortened_;
    }

    void execute(const std::vector<uint64_t> &words, const Segments &segments, uint64_t input_words,
                 uint64_t output_words, uint64_t scratch_words) {
        place_segments(words, segments, input_words, output_words, scratch_words);
        if (!model_) model_.reset(new RtlModel(bus_, values_[STALL_SEED]));
        bus_.begin_run();
        try {
            start_and_wait();
        } catch (...) {
            model_.reset();  // bursts may be on the way: begin anew
            throw;
        }
    }

    void start_and_wait() {
        for (int i = 0; i < 4; i++) {
            const uint32_t offset = REGISTER_BASES[i];
            model_->write_register(offset, static_cast<uint32_t>(bus_.regions[i].base));
            model_->write_register(offset + 4, static_cast<uint32_t>(bus_.regions[i].base >> 32));
        }
        model_->run(values_[TIMEOUT_CYCLES], cycles_);
        const uint32_t status = model_->read_register(REGISTER_STATUS);
        const int code = static_cast<int>(status >> STATUS_ERROR_BIT & 0xff);
        const uint32_t pc = model_->read_register(REGISTER_ERROR_PC);
        if (code != ERROR_OK) fail(code, "instruction " + std::to_string(pc) + ": " + error_text(code), pc);
        if (model_->ports_busy()) fail(ERROR_BUS, "internal error: the run ended before its last response");
        uint64_t total = model_->read_register(REGISTER_CYCLES_LO);
        total |= static_cast<uint64_t>(model_->read_register(REGISTER_CYCLES_HI)) << 32;
        uint64_t counted = 0;
        for (const uint64_t count : cycles_) counted += count;
        if (counted != total)
            fail(ERROR_BUS, "internal error: " + std::to_string(counted) + " cycles were counted by instruction, " +
                                std::to_string(total) + " by the register");
    }

    void place_segments(const std::vector<uint64_t> &words, const Segments &segments, uint64_t input_words,
                        uint64_t output_words, uint64_t scratch_words) {
        const auto bytes_of = [](const uint64_t *p) { return reinterpret_cast<uint8_t *>(const_cast<uint64_t *>(p)); };
        bus_.regions = {{0, words.size(), bytes_of(words.data()), false},
                        {0, input_words, bytes_of(segments.input), false},
                        {0, output_words, bytes_of(segments.output), true},
                        {0, scratch_words, bytes_of(segments.scratch), true}};
        uint64_t at = FIRST_ADDRESS;
        for (Bus::Region &region : bus_.regions) {
            const uint64_t num_words = region.num_bytes;
            if (num_words >= WINDOW_BYTES / 8 || at + 8 * num_words + GAP_BYTES > WINDOW_BYTES)
                fail(ERROR_NO_MEMORY, "the segments do not fit into the 32 GiB that the machine addresses");
            region.base = at;
            region.num_bytes = 8 * num_words;
            at += region.num_bytes + GAP_BYTES;
        }
    }

    const std::vector<uint64_t> &dumped_map() const { return const_cast<RtlMachine *>(this)->dump_map(); }

    const std::vector<uint64_t> &dump_map() {
        if (map_.empty()) {
            static const std::vector<uint64_t> dump = {RASNA_DUMP_PROGRAM};
            std::vector<uint64_t> map(static_cast<size_t>(Target::slices) * Target::map_words);
            const std::vector<uint64_t> cycles = cycles_;
            const BusOptions options = bus_.options;
            cycles_.assign(dump.size() / INSTRUCTION_WORDS, 0);
            bus_.options = BusOptions();
            execute(dump, {nullptr, map.data(), nullptr}, 0, map.size(), 0);
            bus_.options = options;
            cycles_ = cycles;
            map_.swap(map);
        }
        return map_;
    }

    uint64_t values_[NUM_OPTIONS] = {30, 0, 30, 1000000000, 0, 0};
    Bus bus_;
    std::unique_ptr<RtlModel> model_;
    const Program *program_ = nullptr;
    std::vector<uint64_t> shortened_, cycles_, map_;
};

// "name=value,name=value" in RASNA_RTL_OPTIONS: options of every new context.
void set_options_of_environment(RtlMachine &machine) {
    const char *text = getenv("RASNA_RTL_OPTIONS");
    const std::string all = text ? text : "";
    for (size_t at = 0; at < all.size();) {
        const size_t end = all.find(',', at) == std::string::npos ? all.size() : all.find(',', at);
        const std::string item = all.substr(at, end - at);
        const size_t equal = item.find('=');
        if (equal == std::string::npos || !machine.set_option(item.substr(0, equal), item.substr(equal + 1)))
            fail(ERROR_BAD_ARGUMENT, "RASNA_RTL_OPTIONS has \"" + item + "\"; what is allowed is name=value, with" +
                                         (machine.option_names() + 1));
        at = end + 1;
    }
}

}  // namespace

const char *const MACHINE_KIND = "rtl";

// The RTL has one kind of loops: RASNA_BODY is for the fast simulator.
std::unique_ptr<Machine> make_machine(const std::string &) {
    std::unique_ptr<RtlMachine> machine(new RtlMachine);
    set_options_of_environment(*machine);
    return machine;
}

}  // namespace rasna
