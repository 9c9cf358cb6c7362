// The exact functional machine: a validated program on the step functions of hls/, all slices and copies as in hardware.
#include <string.h>

#include <memory>

#include "../hls/exact_run.h"
#include "failure.h"
#include "machine.h"

namespace rasna {
namespace {

class ExactMachine : public Machine {
  public:
    ExactMachine() : context_(new ExactContext<Target>()) {}

    void load(const Program &program) override {
        program_ = &program;
        shortened_.clear();
    }

    void run(const Segments &segments, int64_t stop_at) override {
        const ExactSegments of_image = {program_words(stop_at), segments.input, segments.output, segments.scratch};
        uint32_t pc = 0;
        const int error = exact_run<Target>(*context_, of_image, &pc);
        if (error != ERROR_OK)
            fail(error, "instruction " + std::to_string(pc) + ": " + error_text(error), pc);
    }

    uint64_t map_word(uint32_t slice, uint32_t word) const override {
        return read_bank<Target>(context_->map_mem[slice], word & 1, static_cast<int>(word >> 1));
    }

    bool set_option(const std::string &, const std::string &) override { return false; }
    bool get_option(const std::string &, std::string &) const override { return false; }
    const char *option_names() const override { return ""; }

  private:
    // The program, or a copy with END at stop_at.
    const uint64_t *program_words(int64_t stop_at) {
        if (stop_at < 0 || stop_at >= program_->num_instructions) return program_->words.data();
        shortened_ = program_->words;
        memset(&shortened_[stop_at * INSTRUCTION_WORDS], 0, INSTRUCTION_WORDS * sizeof(uint64_t));
        static_assert(OPCODE_END == 0, "an instruction of zeros is END");
        return shortened_.data();
    }

    std::unique_ptr<ExactContext<Target>> context_;
    const Program *program_ = nullptr;
    std::vector<uint64_t> shortened_;
};

}  // namespace

const char *const MACHINE_KIND = "functional-exact";

// The exact machine has one kind of loops: RASNA_BODY is for the fast one.
std::unique_ptr<Machine> make_machine(const std::string &) { return std::unique_ptr<Machine>(new ExactMachine); }

}  // namespace rasna
