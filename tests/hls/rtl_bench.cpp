// Runs programs on the verilated kernel of hls/top.cpp. Reads cases from the file argv[1], writes
// results to argv[2]; argv[3] is the seed of stalls, argv[4] the percentage of cycles that stall.
//
// case:   program, input, output and scratch words (counts), program words, input words
// result: cycles, error code, number of the last instruction, output words
#include "Vtop.h"
#include "tb.h"
#include "verilated.h"

enum { GAP_BYTES = 256, CANARY = 0x5a, LIMIT_CYCLES = 2000000 };

static void tick(Vtop *top, VerilatedContext *context) {
  context->timeInc(1);
  top->clk = 1, top->eval();
}

static long run_kernel(Vtop *top, VerilatedContext *context, Memory &memory, Stalls &stalls) {
  AxiPort<uint64_t> program, data;
  BIND_AXI(program, top, program);
  BIND_AXI(data, top, data);
  top->start = 1;
  long cycle = 0;
  bool done = false;
  for (; !done; cycle++) {
    if (cycle > LIMIT_CYCLES) fail("the kernel did not finish");
    program.drive(memory, stalls, cycle), data.drive(memory, stalls, cycle);
    top->clk = 0, top->eval();
    done = top->done;
    program.sample(memory, stalls, cycle), data.sample(memory, stalls, cycle);
    tick(top, context);
  }
  top->start = 0;
  for (int k = 0; k < 4; k++) top->clk = 0, top->eval(), tick(top, context);
  return cycle;
}

static std::vector<uint64_t> read_words(FILE *file, size_t count) {
  std::vector<uint64_t> words(count);
  if (fread(words.data(), 8, count, file) != count) fail("the case file is too short");
  return words;
}

int main(int argc, char **argv) {
  if (argc != 5) fail("arguments: cases results seed percent");
  FILE *cases = fopen(argv[1], "rb"), *results = fopen(argv[2], "wb");
  if (!cases || !results) fail("cannot open the files");
  Stalls stalls;
  stalls.rng.seed(atoi(argv[3]));
  stalls.percent = atoi(argv[4]);
  stalls.latency = 30;
  VerilatedContext context;
  context.randReset(2), context.randSeed(atoi(argv[3]) + 1);
  Vtop *top = new Vtop(&context);
  top->rst = 1, top->start = 0;
  for (int k = 0; k < 5; k++) top->clk = 0, top->eval(), tick(top, &context);
  top->rst = 0;
  uint64_t counts[4];
  while (fread(counts, 8, 4, cases) == 4) {
    uint64_t bases[4], at = 4096;
    for (int k = 0; k < 4; k++) bases[k] = at, at += counts[k] * 8 + GAP_BYTES;
    Memory memory(at);
    memset(memory.bytes.data(), CANARY, at);
    for (int k = 0; k < 2; k++) {
      const std::vector<uint64_t> words = read_words(cases, counts[k]);
      memcpy(&memory.bytes[bases[k]], words.data(), 8 * counts[k]);
    }
    const Memory before = memory;
    top->base_program = bases[0], top->base_data = 0;
    top->arg_input_base = bases[1] / 8, top->arg_output_base = bases[2] / 8;
    top->arg_scratch_base = bases[3] / 8;
    if (stalls.percent) stalls.latency = 1 + stalls.rng() % 60;
    const uint64_t cycles = run_kernel(top, &context, memory, stalls);
    for (size_t k = 0; k < at; k++) {
      const bool writable = (k >= bases[2] && k < bases[2] + 8 * counts[2]) ||
                            (k >= bases[3] && k < bases[3] + 8 * counts[3]);
      if (!writable && memory.bytes[k] != before.bytes[k]) fail("a byte outside of the segments changed");
    }
    const uint64_t head[3] = {cycles, top->out_error, top->out_error_pc};
    fwrite(head, 8, 3, results);
    fwrite(&memory.bytes[bases[2]], 8, counts[2], results);
  }
  fclose(results);
  return 0;
}
