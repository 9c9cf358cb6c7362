// Memory behind the AXI4 ports of the verilated accelerator: regions of host memory, latency, random stalls and planted
// faults. It checks the protocol as it goes: a master that breaks it ends the run.
#ifndef RASNA_SIM_RTL_BUS_H
#define RASNA_SIM_RTL_BUS_H

#include <stdint.h>
#include <string.h>

#include <deque>
#include <string>
#include <vector>

#include "../hls/isa.h"
#include "failure.h"

namespace rasna {

// xorshift64*: the same numbers everywhere.
class Random {
  public:
    void seed(uint64_t value) { state_ = value * 0x9e3779b97f4a7c15u | 1; }
    uint32_t below(uint32_t limit) {
        state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
        return static_cast<uint32_t>((state_ * 0x2545f4914f6cdd1du >> 32) * limit >> 32);
    }

  private:
    uint64_t state_ = 1;
};

struct BusOptions {
    uint32_t latency_cycles = 30;  // from an address to its first beat, from the last beat to the response
    uint64_t stall_seed = 0;       // 0: no stalls; otherwise every channel pauses, and latencies vary
    uint32_t stall_percent = 30;   // of the cycles, when there are stalls
    uint64_t error_at = 0;         // this read beat or write response (from 1) is SLVERR; 0: none
    uint64_t hang_at = 0;          // from this one on nothing is answered; 0: never
};

// What the ports share.
class Bus {
  public:
    struct Region {
        uint64_t base, num_bytes;
        uint8_t *bytes;
        bool writable;
    };
    enum Response : uint8_t { OKAY = 0, SLVERR = 2, DECERR = 3 };

    BusOptions options;
    std::vector<Region> regions;

    void begin_run() {
        random_.seed(options.stall_seed);
        answers_ = 0;
    }
    bool pauses() { return options.stall_seed && random_.below(100) < options.stall_percent; }
    uint64_t due(uint64_t cycle) {
        const uint32_t latency = options.latency_cycles;
        return cycle + (options.stall_seed ? 1 + random_.below(2 * latency) : latency);
    }
    bool hangs() const { return options.hang_at && answers_ + 1 >= options.hang_at; }
    // Counts one read beat or write response; true when it is the planted error.
    bool answer_is_error() { return ++answers_ == options.error_at; }

    Response read(uint64_t address, uint64_t *word) const {
        const Region *region = find(address);
        *word = 0xbadbadbadbadbad0u;
        if (region) memcpy(word, region->bytes + (address - region->base), sizeof *word);
        return region ? OKAY : DECERR;
    }
    Response write(uint64_t address, uint64_t word) {
        const Region *region = find(address);
        if (!region) return DECERR;
        if (!region->writable) return SLVERR;
        memcpy(region->bytes + (address - region->base), &word, sizeof word);
        return OKAY;
    }

  private:
    const Region *find(uint64_t address) const {
        for (const Region &region : regions)
            if (address - region.base < region.num_bytes) return &region;
        return nullptr;
    }

    Random random_;
    uint64_t answers_ = 0;
};

// An address channel of a master: offered addresses must stay until they are taken and be legal bursts.
class AddressCheck {
  public:
    void check(const char *name, bool valid, bool ready, uint64_t address, uint32_t beats) {
        if (held_ && (!valid || address != address_ || beats != beats_)) broken(name, "an address went away");
        held_ = valid && !ready;
        address_ = address, beats_ = beats;
        if (!valid) return;
        if (address % 8) broken(name, "an address is not aligned to 8 bytes");
        if ((address ^ (address + 8 * uint64_t{beats} - 1)) >> 12) broken(name, "a burst crosses 4 KB");
    }
    [[noreturn]] static void broken(const char *name, const char *what) {
        fail(ERROR_BUS, std::string("the RTL breaks the AXI protocol at port ") + name + ": " + what);
    }

  private:
    bool held_ = false;
    uint64_t address_ = 0;
    uint32_t beats_ = 0;
};

// Signals of one direction of a port; drive() sets the memory's before the clock edge, sample() takes what happened.
class ReadPort {
  public:
    const char *name;
    uint64_t *araddr, *rdata;
    uint8_t *arlen, *arvalid, *arready, *rresp, *rlast, *rvalid, *rready;

    void drive(Bus &bus, uint64_t cycle) {
        *arready = bursts_.size() < MAX_BURSTS && !bus.pauses();
        const bool can = !bursts_.empty() && bursts_.front().due <= cycle && !bus.hangs();
        if (!held_ && can && !bus.pauses()) held_ = true, is_error_ = bus.answer_is_error();
        *rvalid = held_;
        if (!held_) return;
        *rresp = bus.read(bursts_.front().address, rdata);
        if (is_error_) *rresp = Bus::SLVERR;
        *rlast = bursts_.front().beats == 1;
    }
    void sample(Bus &bus, uint64_t cycle) {
        check_.check(name, *arvalid, *arready, *araddr, *arlen + 1u);
        if (*rvalid && *rready) {
            held_ = false;
            bursts_.front().address += 8;
            if (--bursts_.front().beats == 0) bursts_.pop_front();
        }
        if (*arvalid && *arready) bursts_.push_back({*araddr, *arlen + 1u, bus.due(cycle)});
    }
    bool busy() const { return !bursts_.empty(); }

  private:
    enum { MAX_BURSTS = 16 };
    struct Burst {
        uint64_t address;
        uint32_t beats;
        uint64_t due;
    };
    std::deque<Burst> bursts_;
    AddressCheck check_;
    bool held_ = false;  // VALID stays until READY
    bool is_error_ = false;
};

class WritePort {
  public:
    const char *name;
    uint64_t *awaddr, *wdata;
    uint8_t *awlen, *awvalid, *awready, *wstrb, *wlast, *wvalid, *wready, *bresp, *bvalid, *bready;

    void drive(Bus &bus, uint64_t cycle) {
        *awready = bursts_.size() < MAX_BURSTS && !bus.pauses();
        *wready = data_.size() < MAX_BEATS && !bus.pauses();  // data may come before its address
        const bool can = !answers_.empty() && answers_.front().due <= cycle && !bus.hangs();
        if (!held_ && can && !bus.pauses()) held_ = true, is_error_ = bus.answer_is_error();
        *bvalid = held_;
        if (held_) *bresp = is_error_ ? static_cast<uint8_t>(Bus::SLVERR) : answers_.front().response;
    }
    void sample(Bus &bus, uint64_t cycle) {
        check_.check(name, *awvalid, *awready, *awaddr, *awlen + 1u);
        if (*bvalid && *bready) {
            held_ = false;
            answers_.pop_front();
        }
        if (*wvalid && *wready) {
            if (*wstrb != 0xff) AddressCheck::broken(name, "a word is written in part");
            data_.push_back({*wdata, *wlast != 0});
        }
        if (*awvalid && *awready) bursts_.push_back({*awaddr, *awlen + 1u, Bus::OKAY});
        while (!bursts_.empty() && !data_.empty()) store(bus, cycle);
    }
    bool busy() const { return !bursts_.empty() || !data_.empty() || !answers_.empty(); }

  private:
    enum { MAX_BURSTS = 16, MAX_BEATS = 64 };
    struct Burst {
        uint64_t address;
        uint32_t beats;
        uint8_t response;
    };
    struct Beat {
        uint64_t word;
        bool last;
    };
    struct Answer {
        uint8_t response;
        uint64_t due;
    };

    void store(Bus &bus, uint64_t cycle) {
        Burst &burst = bursts_.front();
        const Bus::Response response = bus.write(burst.address, data_.front().word);
        if (response != Bus::OKAY) burst.response = response;
        burst.address += 8;
        if ((--burst.beats == 0) != data_.front().last) AddressCheck::broken(name, "WLAST is wrong");
        data_.pop_front();
        if (burst.beats) return;
        answers_.push_back({burst.response, bus.due(cycle)});
        bursts_.pop_front();
    }

    std::deque<Burst> bursts_;
    std::deque<Beat> data_;
    std::deque<Answer> answers_;
    AddressCheck check_;
    bool held_ = false;
    bool is_error_ = false;
};

}  // namespace rasna

#endif
