// The fast functional machine: the semantics of docs/machine.md, the loops in the order that suits a processor.
//
// Every stripe is kept once, in the slice of its first copy; other copies are not made, because a tensor is read with
// the number of stripes that it was written with. Tap lists are decoded when a program is loaded.
#ifndef RASNA_SIM_FAST_MACHINE_H
#define RASNA_SIM_FAST_MACHINE_H

#include <stdint.h>

#include <memory>
#include <vector>

#include "../hls/isa.h"
#include "../hls/targets.h"
#include "bodies.h"
#include "machine.h"
#include "taps_plan.h"

namespace rasna {

class FastMachine : public Machine {
  public:
    explicit FastMachine(const Body &body);

    void load(const Program &program) override;
    void run(const Segments &segments, int64_t stop_at) override;
    uint64_t map_word(uint32_t slice, uint32_t word) const override;
    bool set_option(const std::string &name, const std::string &value) override;
    bool get_option(const std::string &name, std::string &value) const override;
    const char *option_names() const override { return ", body, bodies (read only), cache_bytes"; }

  private:
    // One instruction; plan is set for a TAPS whose lists fit into the cache.
    struct Step {
        const uint64_t *words;
        std::unique_ptr<TapsPlan> plan;
    };

    void build_plans();
    void execute(const Step &step, const Segments &segments);
    void fill(const Fill &f);
    void load_rows(const Load &f, const uint64_t *segment);
    void store_rows(const Store &f, uint64_t *segment);
    void set_table(const Table &f);
    void move(const Move &f);
    void taps(const TapsPlan &plan);
    uint8_t *slice_of(int stripe, int stripes_log2) const;  // its map memory

    const Body *body_;
    const Program *program_ = nullptr;
    uint64_t cache_bytes_ = uint64_t{1} << 30;
    std::vector<Step> steps_;
    TableEntry table_[Target::table_entries] = {};
    uint8_t curve_[CURVE_ENTRIES] = {};
    std::unique_ptr<uint8_t[]> map_;  // slices * SLICE_STRIDE bytes
    std::unique_ptr<int32_t[]> acc_;  // [slices][acc_tiles][lanes]
};

// Runs one TAPS: taps_run.cpp.
void run_taps(const TapsPlan &plan, const Body &body, const uint8_t *curve, uint8_t *map, int32_t *acc);

}  // namespace rasna

#endif
