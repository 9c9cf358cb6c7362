// Tap lists: codes out of 64-bit words, and the step through the offset table.
#ifndef RASNA_HLS_TAP_LIST_H
#define RASNA_HLS_TAP_LIST_H

#include <stdint.h>

#include "isa.h"

namespace rasna {

struct Code {
  int8_t weight;
  uint8_t run;  // positions that are skipped before this tap
};

// Code number `slot` of a word: 0 to 7 (dense) or 0 to 4 (sparse).
inline Code unpack_code(uint64_t word, bool sparse, int slot) {
  static_assert(SPARSE_CODE_BITS == 12, "the shifts are its multiples");
  // levels of two-way selects: a shift by slot * 12 would be a shifter for any distance
  const uint64_t half = slot & 4 ? word >> (sparse ? 48 : 32) : word;
  const uint64_t quarter = slot & 2 ? half >> (sparse ? 24 : 16) : half;
  const uint32_t eighth = (uint32_t)(slot & 1 ? quarter >> (sparse ? 12 : 8) : quarter);
  const uint32_t bits = eighth & (sparse ? 0xfff : 0xff);
  const Code code = {(int8_t)(uint8_t)bits, (uint8_t)(bits >> 8)};
  return code;
}

// Where a list stands in the offset table. A list starts one before position 0.
struct Position {
  int16_t index;  // of the table entry that the last code took
  int16_t group;  // bytes added to the offset: group_step for every wrap
};

constexpr Position POSITION_START = {-1, 0};

// Skip `run` entries and take the next one. docs/machine.md wraps twice, after the run and after
// the step; run + 1 <= 16 <= table_entries makes one comparison enough: index stays below
// 2 * table_entries. The sum and the wrapped sum are made side by side, which keeps this loop-
// carried step at one adder and one select.
inline Position advance(Position at, uint8_t run, int table_entries, int16_t group_step) {
  const int32_t step = (int32_t)run + 1;
  const int32_t wrapped = (int32_t)at.index + (step - table_entries);
  const int32_t straight = (int32_t)at.index + step;
  const bool wraps = wrapped >= 0;
  Position next;
  next.index = (int16_t)(wraps ? wrapped : straight);
  next.group = (int16_t)(wraps ? at.group + group_step : at.group);
  return next;
}

}  // namespace rasna

#endif
