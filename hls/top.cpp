// The accelerator's top: interfaces and queues only. Two processes, joined by one stream: fetch
// reads the program as far ahead as the stream is deep, engine executes it.
//
// `program` points to the PROGRAM segment. `data` points to whatever the three other segments lie
// behind, their bases count words of 8 bytes from there. `error` and `error_pc` are registers: the
// error code of the run and the number of the instruction that is being executed, in the end of the
// one that ended it.
#include <stdint.h>

#include "engine.h"
#include "fetch.h"
#include "hls_burst_maxi.h"
#include "hls_stream.h"

using namespace rasna;

typedef hls::burst_maxi<uint64_t> MemoryPort;
typedef hls::stream<uint64_t> WordStream;

// One BRAM36: what fetch may read ahead.
constexpr int PREFETCH_WORDS = 512;

void fetch(MemoryPort port, WordStream &words) {
  request_instruction(port, (uint32_t)0, 0);
  static InstructionWords instruction;
#pragma HLS array_partition variable=instruction complete
  uint32_t pc = 0;
  bool run = true;
  while (run) {
    run = fetch_step(port, (uint32_t)0, pc, instruction, words);
    pc++;
  }
}

void engine(MemoryPort port, uint32_t input_base, uint32_t output_base, uint32_t scratch_base,
            WordStream &words, uint32_t *error, uint32_t *error_pc) {
  static Memory<Target>::Map map_mem;
#pragma HLS array_partition variable=map_mem complete dim=1
#pragma HLS array_partition variable=map_mem complete dim=2
#pragma HLS array_partition variable=map_mem complete dim=3
#pragma HLS bind_storage variable=map_mem type=ram_s2p impl=bram
  static Memory<Target>::List list_mem;
#pragma HLS array_partition variable=list_mem complete dim=1
  static Memory<Target>::Table table_mem;
#pragma HLS array_partition variable=table_mem complete dim=1
#ifdef RASNA_TARGET_KV260  // short of block RAM, not of LUTs
#pragma HLS bind_storage variable=list_mem type=ram_s2p impl=uram
#pragma HLS bind_storage variable=table_mem type=ram_s2p impl=lutram
#else
#pragma HLS bind_storage variable=list_mem type=ram_s2p impl=bram
#pragma HLS bind_storage variable=table_mem type=ram_s2p impl=bram
#endif
  static Memory<Target>::MoveOffset move_mem;
  static Memory<Target>::Accumulator acc_mem;
#pragma HLS array_partition variable=acc_mem complete dim=1
#pragma HLS array_partition variable=acc_mem complete dim=2
#ifdef RASNA_TARGET_KV260
#pragma HLS bind_storage variable=acc_mem type=ram_s2p impl=lutram
#else
#pragma HLS bind_storage variable=acc_mem type=ram_s2p impl=bram
#endif
  static Memory<Target>::Record record_mem;
#pragma HLS array_partition variable=record_mem complete dim=1
#pragma HLS bind_storage variable=record_mem type=ram_s2p impl=lutram
  static Memory<Target>::Curve curve_mem;
#pragma HLS array_partition variable=curve_mem complete dim=1
#pragma HLS bind_storage variable=curve_mem type=ram_s2p impl=lutram
  static Memory<Target>::Drained drained_mem;
#pragma HLS array_partition variable=drained_mem complete dim=1
#pragma HLS bind_storage variable=drained_mem type=ram_s2p impl=lutram
  static StripeOrigin origins[Target::slices];
#pragma HLS array_partition variable=origins complete
  const SegmentBases<uint32_t> bases = {input_base, output_base, scratch_base};
  static InstructionWords instruction;
#pragma HLS array_partition variable=instruction complete
  uint32_t pc = 0;
  bool run = true;
  while (run) {
    *error_pc = pc;
    read_instruction(words, instruction);
    const Outcome outcome = execute<Target>(instruction, port, bases, words, map_mem, list_mem,
                                            table_mem, move_mem, acc_mem, record_mem, curve_mem,
                                            drained_mem, origins);
    run = !is_last((uint8_t)instruction[0]);
    *error = (uint32_t)outcome.error;
    pc++;
  }
}

extern "C" void rasna_top(MemoryPort program, MemoryPort data, uint32_t input_base,
                          uint32_t output_base, uint32_t scratch_base, uint32_t *error,
                          uint32_t *error_pc) {
#pragma HLS interface mode=m_axi port=program bundle=program offset=slave
#pragma HLS interface mode=m_axi port=data bundle=data offset=slave
#pragma HLS interface mode=s_axilite port=input_base
#pragma HLS interface mode=s_axilite port=output_base
#pragma HLS interface mode=s_axilite port=scratch_base
#pragma HLS interface mode=s_axilite port=error
#pragma HLS interface mode=s_axilite port=error_pc
#pragma HLS interface mode=s_axilite port=return
#pragma HLS dataflow
  WordStream words;
#pragma HLS stream variable=words depth=PREFETCH_WORDS
  fetch(program, words);
  engine(data, input_base, output_base, scratch_base, words, error, error_pc);
}
