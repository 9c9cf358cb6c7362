// Runs a program with the step functions of the hardware, one instruction at a time: the exact
// functional simulator. Not for synthesis. It checks nothing: the caller validates the program.
#ifndef RASNA_HLS_EXACT_RUN_H
#define RASNA_HLS_EXACT_RUN_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "config.h"
#include "engine.h"
#include "fetch.h"

namespace rasna {

// The calls of hls::burst_maxi; an address is that of the host's memory, divided by 8.
class PlainPort {
 public:
  void read_request(uint64_t address, uint32_t num_words) { reads_.push(address, num_words); }
  uint64_t read() { return *reads_.next(); }
  void write_request(uint64_t address, uint32_t num_words) { writes_.push(address, num_words); }
  void write(uint64_t word) { *writes_.next() = word; }
  void write_response() {}

 private:
  struct Burst {
    uint64_t *word;
    uint32_t num_words;
  };
  // Requests in order; never more than the hardware has in flight.
  class Queue {
   public:
    void push(uint64_t address, uint32_t num_words) {
      const Burst burst = {(uint64_t *)(uintptr_t)(address * 8), num_words};
      bursts_[(first_ + count_++) % CAPACITY] = burst;
    }
    uint64_t *next() {
      Burst &burst = bursts_[first_ % CAPACITY];
      uint64_t *word = burst.word++;
      if (--burst.num_words == 0) first_++, count_--;
      return word;
    }

   private:
    static constexpr unsigned CAPACITY = 2 * RUNS_AHEAD;
    Burst bursts_[CAPACITY];
    unsigned first_ = 0, count_ = 0;
  };

  Queue reads_, writes_;
};

// The calls of hls::stream<uint64_t>.
class PlainStream {
 public:
  void write(uint64_t word) { words_.push_back(word); }
  uint64_t read() {
    const uint64_t word = words_[head_++];
    if (head_ == words_.size()) words_.clear(), head_ = 0;
    return word;
  }

 private:
  std::vector<uint64_t> words_;
  size_t head_ = 0;
};

// All state of one machine: value-initialise it, so that it is all zero. Half a megabyte and more.
template <class T>
struct ExactContext {
  typename Memory<T>::Map map_mem;
  typename Memory<T>::List list_mem;
  typename Memory<T>::Table table_mem;
  typename Memory<T>::MoveOffset move_mem;
  typename Memory<T>::Accumulator acc_mem;
  typename Memory<T>::Record record_mem;
  typename Memory<T>::Curve curve_mem;
  typename Memory<T>::Drained drained_mem;
  StripeOrigin origins[T::slices];
};

// The segments of one run, aligned to 8 bytes.
struct ExactSegments {
  const uint64_t *program, *input;
  uint64_t *output, *scratch;
};

inline uint64_t word_address(const uint64_t *memory) { return (uint64_t)(uintptr_t)memory / 8; }

// Runs a validated program to its END. Returns an error code; *error_pc is the number of the
// instruction that ended the run. iterations[pc], if given, receives how often the loop of that
// TAPS or MOVE ran.
template <class T>
int exact_run(ExactContext<T> &context, const ExactSegments &segments, uint32_t *error_pc,
              uint32_t *iterations = nullptr) {
  PlainPort program_port, data_port;
  PlainStream words;
  const uint64_t program_base = word_address(segments.program);
  const SegmentBases<uint64_t> bases = {word_address(segments.input), word_address(segments.output),
                                        word_address(segments.scratch)};
  request_instruction(program_port, program_base, 0);
  InstructionWords fetched = {}, instruction = {};
  bool run = true;
  int error = ERROR_OK;
  uint32_t pc = 0;
  while (run) {
    run = fetch_step(program_port, program_base, pc, fetched, words);
    read_instruction(words, instruction);
    const Outcome outcome = execute<T>(instruction, data_port, bases, words, context.map_mem,
                                       context.list_mem, context.table_mem, context.move_mem,
                                       context.acc_mem, context.record_mem,
                                       context.curve_mem, context.drained_mem, context.origins);
    if (iterations) iterations[pc] = outcome.iterations;
    error = outcome.error;
    *error_pc = pc;
    pc++;
  }
  return error;
}

}  // namespace rasna

#endif
