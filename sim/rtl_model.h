// The verilated accelerator with its clock, its host and its memory: one instance, re-entrant. See docs/rtl.md.
#ifndef RASNA_SIM_RTL_MODEL_H
#define RASNA_SIM_RTL_MODEL_H

#include <stdint.h>

#include <memory>
#include <string>
#include <vector>

#include "Vrasna_accelerator.h"
#include "rtl_bus.h"
#include "verilated.h"

namespace rasna {

// Register offsets and bits come from isa.py through the build (rtl_constants.h).
class RtlModel {
  public:
    // seed: of the registers' initial values. bus lives longer than the model.
    RtlModel(Bus &bus, uint64_t seed);
    ~RtlModel();

    void write_register(uint32_t offset, uint32_t value);
    uint32_t read_register(uint32_t offset);

    // Starts a run and waits for its interrupt; adds the cycles of instruction k to cycles[k]. Throws Failure
    // (ERROR_TIMEOUT) after timeout_cycles, or when the RTL reports a deadlock; the model is of no use any more then.
    void run(uint64_t timeout_cycles, std::vector<uint64_t> &cycles);

    // What is on the way on the ports after a run: must be nothing.
    bool ports_busy() const { return program_.busy() || read_.busy() || write_.busy(); }

  private:
    void enter();
    void bind();
    void tick();
    void count_cycle();
    [[noreturn]] void timed_out(const std::string &why);

    Bus &bus_;
    std::string printed_;
    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vrasna_accelerator> top_;
    ReadPort program_, read_;
    WritePort write_;
    uint64_t cycle_ = 0;
    std::vector<uint64_t> *cycles_ = nullptr;  // of the run that goes on
    uint64_t instruction_ = 0;
    bool stale_pc_ = true;  // until the kernel writes 0, its register is that of the run before
};

}  // namespace rasna

#endif
