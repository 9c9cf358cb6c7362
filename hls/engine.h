// Engine: takes one instruction after another from the stream and executes it.
#ifndef RASNA_HLS_ENGINE_H
#define RASNA_HLS_ENGINE_H

#include <stdint.h>

#include "config.h"
#include "curve.h"
#include "fetch.h"
#include "tiles.h"
#include "transfer.h"

namespace rasna {

// Where the segments begin, in words of 8 bytes.
template <class Address>
struct SegmentBases {
  Address input, output, scratch;
};

template <class Address>
inline Address load_base(const SegmentBases<Address> &bases, uint8_t segment) {
  return segment == SEGMENT_INPUT ? bases.input : bases.scratch;
}

template <class Address>
inline Address store_base(const SegmentBases<Address> &bases, uint8_t segment) {
  return segment == SEGMENT_OUTPUT ? bases.output : bases.scratch;
}

// What the loop of TAPS, MOVE, LOAD and FILL has to do.
template <class T>
inline TilesJob tiles_job(const InstructionWords &instruction, uint8_t opcode) {
  switch (opcode) {
    case OPCODE_TAPS: return taps_job<T>(decode_taps(instruction));
    case OPCODE_MOVE: return move_job(decode_move(instruction));
    case OPCODE_LOAD: return load_job(decode_load(instruction));
    default: return fill_job(decode_fill(instruction));
  }
}

struct Outcome {
  int error;
  uint32_t iterations;  // of the loop of TAPS, MOVE, LOAD and FILL; 0 for others
};

// Executes one instruction; what it did is in memory when it returns.
template <class T, class Port, class Address, class Stream>
Outcome execute(const InstructionWords &instruction, Port &port,
                const SegmentBases<Address> &bases, Stream &words,
                typename Memory<T>::Map &map_mem, typename Memory<T>::List &list_mem,
                typename Memory<T>::Table &table_mem, typename Memory<T>::MoveOffset &move_mem,
                typename Memory<T>::Accumulator &acc_mem, typename Memory<T>::Record &record_mem,
                typename Memory<T>::Curve &curve_mem, typename Memory<T>::Drained &drained_mem,
                StripeOrigin (&origins)[T::slices]) {
  const uint8_t opcode = (uint8_t)instruction[0];
  Outcome outcome = {ERROR_OK, 0};
  switch (opcode) {
    case OPCODE_END:
      break;
    case OPCODE_STORE: {
      const Store f = decode_store(instruction);
      store_step<T>(f, runs_of(f, store_base(bases, f.segment)), port, map_mem);
      break;
    }
    case OPCODE_TABLE:
      table_step<T>(decode_table(instruction), words, table_mem, move_mem);
      break;
    case OPCODE_CURVE:
      curve_step<T>(words, curve_mem);
      break;
    case OPCODE_TAPS:
    case OPCODE_MOVE:
    case OPCODE_LOAD:
    case OPCODE_FILL: {
      const InstructionWords nothing = {};
      const Taps taps = decode_taps(opcode == OPCODE_TAPS ? instruction : nothing);
      const Load load = decode_load(instruction);
      const Reader<Address> reader = {runs_of(load, load_base(bases, load.segment)), 0, false};
      outcome.iterations = tiles_step<T>(tiles_job<T>(instruction, opcode), taps, reader, port, words,
                                         map_mem, list_mem, table_mem, move_mem, acc_mem, record_mem,
                                         curve_mem, drained_mem, origins);
      break;
    }
    default:
      outcome.error = ERROR_BAD_OPCODE;
  }
  return outcome;
}

}  // namespace rasna

#endif
