"""The text of a C++ test bench for a top whose arguments are memory ports of uint64_t and uint32_t
scalars.
"""

# ruff: noqa: E501 (text of generated code)
from __future__ import annotations

_BENCH = """
#include "Vtop.h"
#include "verilated.h"
#include "tb.h"
#include "hls_burst_maxi.h"
typedef hls::burst_maxi<uint64_t> port_t;
extern "C" void @TOP@(@PROTOTYPE@);

enum { NUM_PORTS = @NUM_PORTS@, WORDS = @WORDS@, REGION = 8 * WORDS, GAP = 256 };
static uint64_t base_of(int port) { return 4096 + (uint64_t)port * (REGION + GAP) + @OFFSET@; }

static long run_model(Vtop *top, VerilatedContext *context, Memory &memory, Stalls &stalls, const uint32_t *scalars, int error) {
  AxiPort<uint64_t> ports[NUM_PORTS];
@BIND@
  for (AxiPort<uint64_t> &port : ports) port.error_response = error;
@SET@
  top->start = 1;
  long cycle = 0;
  for (;; cycle++) {
    if (cycle > @LIMIT@) return -1;
    for (AxiPort<uint64_t> &port : ports) port.drive(memory, stalls, cycle);
    top->clk = 0, top->eval();
    bool done = top->done;
    for (AxiPort<uint64_t> &port : ports) port.sample(memory, stalls, cycle);
    context->timeInc(1);
    top->clk = 1, top->eval();
    if (done) break;
  }
  top->start = 0;
  for (int k = 0; k < 4; k++) top->clk = 0, top->eval(), context->timeInc(1), top->clk = 1, top->eval();
  return cycle;
}

static uint64_t word(std::mt19937 &rng) {
  uint64_t value = (uint64_t)rng() << 32 | rng();
  switch (rng() % 6) {
    case 0: return value & 0xff;
    case 1: return (uint64_t)-(int64_t)(value & 15);
    case 2: return value & 0xffffffff;
    default: return value;
  }
}

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  int sets = argc > 1 ? atoi(argv[1]) : 6;
  uint32_t seed = argc > 2 ? atoi(argv[2]) : 1;
  int error = argc > 3 ? atoi(argv[3]) : 0;
  VerilatedContext context;
  context.randReset(2), context.randSeed(seed);
  Vtop *top = new Vtop(&context);
  top->rst = 1, top->start = 0;
  for (int k = 0; k < 5; k++) top->clk = 0, top->eval(), context.timeInc(1), top->clk = 1, top->eval();
  top->rst = 0;
  long cycles = 0, compared = 0;
  for (int set = 0; set < sets; set++) {
    std::mt19937 rng(seed * 1000 + set);
    Stalls stalls;
    stalls.rng.seed(rng());
    stalls.percent = set % 3 == 0 ? 0 : set % 3 == 1 ? 20 : 60;
    stalls.latency = 1 + rng() % 40;
    Memory software(base_of(NUM_PORTS)), hardware(0);
    for (uint8_t &byte : software.bytes) byte = 0x5a;
    for (int port = 0; port < NUM_PORTS; port++)
      for (int k = 0; k < WORDS; k++) { uint64_t w = word(rng); memcpy(&software.bytes[base_of(port) + 8 * k], &w, 8); }
    hardware = software;
    Memory before = software;
    uint32_t scalars[8];
    for (uint32_t &s : scalars) s = set == 0 ? @FIRST@ : 1 + rng() % @MAX_N@;
    std::vector<std::vector<uint64_t>> regions(NUM_PORTS);
    for (int port = 0; port < NUM_PORTS; port++) {
      regions[port].resize(WORDS);
      memcpy(regions[port].data(), &software.bytes[base_of(port)], REGION);
    }
    try { @TOP@(@ACTUALS@); } catch (const std::exception &e) { printf("SOFTWARE %s\\n", e.what()); return 3; }
    for (int port = 0; port < NUM_PORTS; port++) memcpy(&software.bytes[base_of(port)], regions[port].data(), REGION);
    long n = run_model(top, &context, hardware, stalls, scalars, error);
    if (n < 0) { printf("HANG in set %d\\n", set); return 2; }
    cycles += n;
    for (size_t at = 0; at < software.bytes.size(); at++) {
      compared += software.bytes[at] != before.bytes[at];
      if (software.bytes[at] != hardware.bytes[at]) {
        size_t w = at & ~(size_t)7;
        uint64_t s, h; memcpy(&s, &software.bytes[w], 8); memcpy(&h, &hardware.bytes[w], 8);
        printf("MISMATCH in set %d at byte %zu: software %016lx hardware %016lx\\n", set, at, (long)s, (long)h);
        return 1;
      }
    }
  }
  if (error) { printf("ERRORS %lx\\n", (long)top->axi_error); return 0; }
  if (compared == 0) { printf("NOTHING was written\\n"); return 4; }
  printf("EQUAL cycles %ld bytes %ld\\n", cycles, compared);
  return 0;
}
"""


def bench(
    top: str,
    arguments: list[str],
    words: int = 4096,
    max_n: int = 40,
    limit: int = 400_000,
    first: str = "0",
    offset: int = 0,
) -> str:
    """``arguments`` in order: ``"port:<bundle>:<name>"`` or ``"scalar:<name>"``."""
    prototype, actuals, binds, sets, num_ports, num_scalars = [], [], [], [], 0, 0
    for argument in arguments:
        kind, *names = argument.split(":")
        if kind == "port":
            prototype.append("port_t")
            actuals.append(f"port_t(regions[{num_ports}].data(), WORDS)")
            binds.append(f"  BIND_AXI(ports[{num_ports}], top, {names[0]});")
            sets.append(f"  top->base_{names[-1]} = base_of({num_ports});")
            num_ports += 1
        else:
            prototype.append("uint32_t")
            actuals.append(f"scalars[{num_scalars}]")
            sets.append(f"  top->arg_{names[0]} = scalars[{num_scalars}];")
            num_scalars += 1
    text = _BENCH
    for key, value in {
        "TOP": top,
        "PROTOTYPE": ", ".join(prototype),
        "ACTUALS": ", ".join(actuals),
        "BIND": "\n".join(binds),
        "SET": "\n".join(sets),
        "NUM_PORTS": num_ports,
        "WORDS": words,
        "MAX_N": max_n,
        "LIMIT": limit,
        "FIRST": first,
        "OFFSET": offset,
    }.items():
        text = text.replace(f"@{key}@", str(value))
    return text
