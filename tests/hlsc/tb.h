// Test bench for a verilated kernel: memory behind AXI ports with random latency and stalls, a clock, a time limit.
// Data beats are at most 64 bits. Requests outside of the memory, or crossing 4 KB, end the run as an error.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

struct Memory {
  std::vector<uint8_t> bytes;
  explicit Memory(size_t num_bytes) : bytes(num_bytes) {}
};

struct Stalls {
  std::mt19937 rng;
  int percent = 0;      // of cycles in which a channel is not ready or not valid
  int latency = 4;      // cycles from an address to its first beat
  bool go() { return (int)(rng() % 100) >= percent; }
};

[[noreturn]] inline void fail(const char *what) {
  printf("FAIL %s\n", what);
  exit(1);
}

// One AXI4 port. Signals are bound once; drive() before the clock edge, sample() right before the rising edge.
template <class Data>
struct AxiPort {
  uint64_t *araddr, *awaddr;
  uint8_t *arlen, *arvalid, *arready, *rresp, *rlast, *rvalid, *rready;
  uint8_t *awlen, *awvalid, *awready, *wlast, *wvalid, *wready, *bresp, *bvalid, *bready;
  Data *rdata, *wdata;
  int error_response = 0;
  bool read_held = false, response_held = false;  // VALID stays until READY

  struct Beat {
    uint64_t addr;
    long due;
    bool last;
  };
  struct Burst {
    uint64_t addr;
    int beats;
  };
  std::deque<Beat> reads;
  std::deque<Burst> writes;
  std::deque<long> responses;
  uint64_t num_read_beats = 0, num_write_beats = 0;

  static void check(const Memory &memory, uint64_t addr, int beats) {
    uint64_t end = addr + (uint64_t)beats * sizeof(Data);
    if (end > memory.bytes.size()) fail("burst outside of the memory");
    if ((addr ^ (end - 1)) >> 12) fail("burst crosses 4 KB");
    if (addr % sizeof(Data)) fail("burst is not aligned");
  }
  void drive(const Memory &memory, Stalls &stalls, long cycle) {
    *arready = stalls.go();
    *awready = stalls.go();
    *wready = !writes.empty() && stalls.go();
    *rvalid = read_held = read_held || (!reads.empty() && reads.front().due <= cycle && stalls.go());
    *bvalid = response_held = response_held || (!responses.empty() && responses.front() <= cycle && stalls.go());
    *rresp = *bresp = error_response;
    *rlast = *rvalid && reads.front().last;
    *rdata = (Data)0xa5a5a5a5a5a5a5a5ull;
    if (*rvalid) memcpy(rdata, &memory.bytes[reads.front().addr], sizeof(Data));
  }
  void sample(Memory &memory, Stalls &stalls, long cycle) {
    if (*rvalid && !*rready) fail("RREADY is low: a burst was issued without room for it");
    if (*rvalid && *rready) reads.pop_front(), ++num_read_beats, read_held = false;
    if (*bvalid && *bready) responses.pop_front(), response_held = false;
    if (*arvalid && *arready) {
      check(memory, *araddr, *arlen + 1);
      for (int k = 0; k <= *arlen; k++)
        reads.push_back({*araddr + k * sizeof(Data), cycle + stalls.latency, k == *arlen});
    }
    if (*wvalid && *wready) {
      Burst &burst = writes.front();
      memcpy(&memory.bytes[burst.addr], wdata, sizeof(Data));
      burst.addr += sizeof(Data);
      ++num_write_beats;
      if ((--burst.beats == 0) != *wlast) fail("WLAST is wrong");
      if (*wlast) writes.pop_front(), responses.push_back(cycle + stalls.latency);
    }
    if (*awvalid && *awready) {
      check(memory, *awaddr, *awlen + 1);
      writes.push_back({*awaddr, *awlen + 1});
    }
  }
};

#define BIND_AXI(port, model, name)                                                                       \
  do {                                                                                                    \
    (port).araddr = &(model)->m_axi_##name##_araddr, (port).arlen = &(model)->m_axi_##name##_arlen;       \
    (port).arvalid = &(model)->m_axi_##name##_arvalid, (port).arready = &(model)->m_axi_##name##_arready; \
    (port).rdata = &(model)->m_axi_##name##_rdata, (port).rresp = &(model)->m_axi_##name##_rresp;         \
    (port).rlast = &(model)->m_axi_##name##_rlast, (port).rvalid = &(model)->m_axi_##name##_rvalid;       \
    (port).rready = &(model)->m_axi_##name##_rready, (port).awaddr = &(model)->m_axi_##name##_awaddr;     \
    (port).awlen = &(model)->m_axi_##name##_awlen, (port).awvalid = &(model)->m_axi_##name##_awvalid;     \
    (port).awready = &(model)->m_axi_##name##_awready, (port).wdata = &(model)->m_axi_##name##_wdata;     \
    (port).wlast = &(model)->m_axi_##name##_wlast, (port).wvalid = &(model)->m_axi_##name##_wvalid;       \
    (port).wready = &(model)->m_axi_##name##_wready, (port).bresp = &(model)->m_axi_##name##_bresp;       \
    (port).bvalid = &(model)->m_axi_##name##_bvalid, (port).bready = &(model)->m_axi_##name##_bready;     \
  } while (0)
