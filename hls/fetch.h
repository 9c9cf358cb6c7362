// Fetch: reads the program and sends it to the engine as one stream of 64-bit words: every
// instruction, and right behind it the words that it needs.
#ifndef RASNA_HLS_FETCH_H
#define RASNA_HLS_FETCH_H

#include <stdint.h>

#include "isa.h"

namespace rasna {

// An instruction as words; the newest word is shifted in behind the others.
typedef uint64_t InstructionWords[INSTRUCTION_WORDS];

inline void shift_in(InstructionWords &instruction, uint64_t word) {
  for (int i = 0; i < INSTRUCTION_WORDS - 1; i++) {
#pragma HLS unroll
    instruction[i] = instruction[i + 1];
  }
  instruction[INSTRUCTION_WORDS - 1] = word;
}

// After these, both processes stop: the engine reports what it was.
inline bool is_last(uint8_t opcode) { return opcode == OPCODE_END || opcode >= NUM_OPCODES; }

// The words in the program that belong to an instruction. A TAPS that computes nothing has none.
inline StreamPlace stream_place(const InstructionWords &instruction) {
  const Taps taps = decode_taps(instruction);
  const bool computes = taps.num_channels != 0 && taps.tile_rows != 0 && taps.tile_words != 0;
  StreamPlace place = stream_of(instruction);
  if (taps.opcode == OPCODE_TAPS && !computes) place.num_words = 0;
  return place;
}

// One instruction out of the stream.
template <class Stream>
void read_instruction(Stream &words, InstructionWords &instruction) {
  for (int i = 0; i < INSTRUCTION_WORDS; i++) {
#pragma HLS pipeline II=1
    shift_in(instruction, words.read());
  }
}

// Asks for instruction number `pc`.
template <class Port, class Address>
void request_instruction(Port &port, Address program_base, uint32_t pc) {
  port.read_request(program_base + pc * INSTRUCTION_WORDS, INSTRUCTION_WORDS);
}

// Passes on instruction number `pc`, which was asked for, and its stream. The stream and the next
// instruction are asked for at once, so that memory's latency counts once. False after the last
// one. `instruction` is where its words go by.
template <class Port, class Address, class Stream>
bool fetch_step(Port &port, Address program_base, uint32_t pc, InstructionWords &instruction,
                Stream &words) {
  for (int i = 0; i < INSTRUCTION_WORDS; i++) {
#pragma HLS pipeline II=1
    const uint64_t word = port.read();
    words.write(word);
    shift_in(instruction, word);
  }
  const StreamPlace place = stream_place(instruction);
  const bool more = !is_last((uint8_t)instruction[0]);
  if (place.num_words != 0) port.read_request(program_base + place.address, place.num_words);
  if (more) request_instruction(port, program_base, pc + 1);
  for (uint32_t i = 0; i < place.num_words; i++) {
#pragma HLS pipeline II=1
    words.write(port.read());
  }
  return more;
}

}  // namespace rasna

#endif
