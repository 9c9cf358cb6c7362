// Slice: one tap times 8 pixels per cycle. L copies of this work in lock step.
#ifndef RASNA_HLS_SLICE_H
#define RASNA_HLS_SLICE_H

#include <stdint.h>

#include "config.h"
#include "drain.h"
#include "loader.h"
#include "map_memory.h"
#include "tap_list.h"

namespace rasna {

// The same for all slices in one cycle.
struct StepControl {
  bool active;         // a tile is being worked on
  bool first;          // its first step
  bool is_move, is_max, acc_init, sparse;
  uint32_t step;       // number of the step within the tile
  uint16_t list_index; // word of the list
  uint8_t slot;        // code within the word
  uint16_t offset;     // bytes from the first source vector of the round to this tile's
  uint16_t acc_index;
  uint16_t table_entries;
  int16_t group_step;
  uint8_t fill;
};

// Registers of a slice.
template <class T>
struct Slice {
  SliceChannel channel;
  Position position;
  Lanes<T> acc;
  uint64_t moved;   // MOVE: the word that is being assembled
  bool move_fresh;  // MOVE: it is empty
};

// Two products by one DSP48: x1 * 2^16 + x0 has 25 bits, x0 * weight fits int16 because
// 128 * 255 < 2^15, so the low half separates exactly. For MAX the weight is 1 and the pixels lie in
// -256 ... 127: -256 * 2^16 - 1 and below wrap, which leaves nine bits of the upper product right.
inline void multiply_pair(int16_t x0, int16_t x1, int8_t weight, bool is_max, int32_t &p0,
                          int32_t &p1) {
  const int64_t sum = (int64_t)x1 * 65536 + (int64_t)x0;
  const int64_t packed = (int64_t)((uint64_t)sum << 39) >> 39;
  const int64_t product = packed * (int64_t)weight;
  p0 = (int32_t)(int16_t)product;
  const int32_t upper = (int32_t)(int16_t)((product >> 16) + ((product >> 15) & 1));
  p1 = is_max ? (int32_t)((uint32_t)upper << 23) >> 23 : upper;
}

// acc + product, or max(acc, pixel) where `takes`. For MAX the product is ~pixel, so that the one
// adder of the lane compares as well: acc + ~pixel = acc - pixel - 1 is negative if acc <= pixel.
// The pixel comes out of the multiplier and needs no delay line of its own.
inline int32_t accumulate(int32_t acc, int32_t product, bool is_max, bool takes) {
  const int64_t sum = (int64_t)acc + (int64_t)product;
  const int32_t larger = takes && sum < 0 ? ~product : acc;
  return is_max ? larger : (int32_t)sum;
}

// What a lane multiplies: its pixel, ~pixel for MAX, 0 if the mask leaves it out.
inline int16_t factor_of_lane(uint64_t vector, int lane, const TableEntry &entry, bool is_max) {
  const int16_t pixel = lane_value(vector, lane, entry.is_signed != 0);
  const int16_t factor = is_max ? (int16_t)~pixel : pixel;
  return (entry.lane_mask >> lane) & 1 ? factor : (int16_t)0;
}

template <class T>
inline void accumulate_vector(Slice<T> &slice, const Lanes<T> &start, const StepControl &c,
                              uint64_t vector, int8_t weight, const TableEntry &entry) {
  const bool takes = weight != 0;
  const int8_t factor = c.is_max ? (int8_t)1 : weight;
  for (int p = 0; p < T::lanes; p += 2) {
#pragma HLS unroll
    const bool in0 = (entry.lane_mask >> p) & 1, in1 = (entry.lane_mask >> (p + 1)) & 1;
    int32_t p0, p1;
    multiply_pair(factor_of_lane(vector, p, entry, c.is_max),
                  factor_of_lane(vector, p + 1, entry, c.is_max), factor, c.is_max, p0, p1);
    const int32_t acc0 = c.first ? start.v[p] : slice.acc.v[p];
    const int32_t acc1 = c.first ? start.v[p + 1] : slice.acc.v[p + 1];
    slice.acc.v[p] = accumulate(acc0, p0, c.is_max, takes && in0);
    slice.acc.v[p + 1] = accumulate(acc1, p1, c.is_max, takes && in1);
  }
}

// MOVE: the masked bytes of the vector replace those of the word.
inline uint64_t merge_bytes(uint64_t word, uint64_t vector, uint8_t lane_mask) {
  uint64_t merged = 0;
  for (int p = 0; p < WORD_BYTES; p++) {
#pragma HLS unroll
    const uint64_t source = (lane_mask >> p) & 1 ? vector : word;
    merged |= source & ((uint64_t)0xff << (8 * p));
  }
  return merged;
}

inline uint64_t repeat_byte(uint8_t byte) {
  uint64_t word = byte;
  word |= word << 8;
  word |= word << 16;
  return word | word << 32;
}

// One step of one slice. Returns the table entry that it took.
template <class T>
inline TableEntry slice_step(Slice<T> &slice, const StepControl &c,
                             const uint64_t (&list)[2 * T::list_words],
                             const uint32_t (&table)[T::table_entries],
                             const uint64_t (&banks)[2][T::map_words / 2],
                             const int32_t (&kept)[T::acc_tiles][T::lanes]) {
  const Code code =
      unpack_code(list[c.list_index & (2 * T::list_words - 1)], c.sparse, c.slot);
  const uint8_t run = c.sparse && !c.is_move ? code.run : (uint8_t)0;
  slice.position = advance(c.first ? POSITION_START : slice.position, run, c.table_entries,
                           c.group_step);
  const uint64_t table_word = table[slice.position.index & (T::table_entries - 1)];
  const TableEntry entry = decode_table_entry(&table_word);
  const uint16_t address = (uint16_t)((slice.channel.src_base + c.offset) +
                                      (slice.position.group + entry.offset));
  const uint64_t vector = read_vector<T>(banks, address);

  // codes behind the list's end, and cycles that wait for the drain, have weight 0
  const bool live = c.step < (uint32_t)slice.channel.num_codes;
  const int8_t weight = live ? code.weight : (int8_t)0;
  Lanes<T> start;
  for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
    const int32_t stored = kept[c.acc_index & (T::acc_tiles - 1)][p];
    start.v[p] = c.acc_init ? stored : slice.channel.bias;
  }
  accumulate_vector<T>(slice, start, c, vector, weight, entry);

  slice.moved = merge_bytes(slice.move_fresh ? repeat_byte(c.fill) : slice.moved, vector, entry.lane_mask);
  if (c.active) slice.move_fresh = entry.last != 0;
  return entry;
}

}  // namespace rasna

#endif
