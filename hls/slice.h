// Slice: one tap times 8 pixels per cycle. L copies of this work in lock step.
#ifndef RASNA_HLS_SLICE_H
#define RASNA_HLS_SLICE_H

#include <stdint.h>

#include "config.h"
#include "loader.h"
#include "map_memory.h"
#include "tap_list.h"

namespace rasna {

// Accumulators of a slice.
template <class T>
struct Lanes {
  int32_t v[T::lanes];
};

// The same for all slices in one cycle.
struct StepControl {
  bool active;         // a tile is being worked on
  bool starts;         // the next cycle is the first one of a tile
  bool is_move, is_max, sparse;
  uint16_t step;       // number of the step within the tile
  uint16_t list_index; // word of the list
  uint8_t slot;        // code within the word
  uint16_t offset;     // bytes from the first source vector of the round to this tile's
  uint16_t table_entries;
  int16_t group_step;
};

// Registers of a slice.
template <class T>
struct Slice {
  SliceChannel channel;
  Position position;
  Lanes<T> acc;     // what this tile has summed up; the drain adds where it started from
  uint64_t moved;   // MOVE: the word that is being assembled
  bool move_fresh;  // MOVE: it is empty
};

// MAX works with pixel + 256, which is 128 to 511: nine bits, and 0 stands for no pixel.
constexpr int MAX_BITS = 9;
constexpr int32_t MAX_MASK = (1 << MAX_BITS) - 1;

// Two products by one DSP48: x1 * 2^16 + x0 has 25 bits, x0 * factor fits int16 because
// 128 * 255 < 2^15, so the low half separates exactly. Half of the upper one's unit is added to
// round away what the low half borrowed: that is the DSP48's own adder.
inline void multiply_pair(int16_t x0, int16_t x1, int8_t factor, int32_t &p0, int32_t &p1) {
  const int64_t sum = (int64_t)x1 * 65536 + (int64_t)x0;
  const int64_t packed = (int64_t)((uint64_t)sum << 39) >> 39;
  const int64_t product = packed * (int64_t)factor + 0x8000;
  p0 = (int32_t)(int16_t)(product ^ 0x8000);
  p1 = (int32_t)(int16_t)(product >> 16);
}

// A sum has so many bits and no more: registers are as wide as what is read of them.
template <class T>
inline int32_t narrow_sum(int32_t sum) {
  constexpr int unused = 32 - sum_bits<T>();
  return (int32_t)((uint32_t)sum << unused) >> unused;
}

// acc + product; or, in the low bits, the larger of the two for MAX. One adder does both: the
// complement of the product's low bits and the bit above makes it acc - product - 1 there, and the
// carry that leaves the low bits says which one is larger. Bits above are of no use for MAX.
template <class T>
inline int32_t accumulate(int32_t acc, int32_t product, bool is_max) {
  const int32_t addend = is_max ? product ^ (2 * MAX_MASK + 1) : product;
  const int32_t sum = acc + addend;
  const bool takes = ((sum ^ acc ^ product) >> MAX_BITS) & 1;
  const int32_t larger = takes ? product : acc;
  const int32_t result = is_max ? (sum & ~MAX_MASK) | (larger & MAX_MASK) : sum;
  return narrow_sum<T>(result);
}

// What a lane multiplies: its pixel, with 256 more for MAX; 0 if the mask leaves it out. For MAX
// the nine bits are those of an unsigned number.
inline int16_t factor_of_lane(uint64_t vector, int lane, const TableEntry &entry, bool is_max) {
  const int16_t pixel = lane_value(vector, lane, entry.is_signed != 0);
  const int16_t factor = is_max ? (int16_t)((uint16_t)(pixel ^ 256) << 7) >> 7 : pixel;
  return (entry.lane_mask >> lane) & 1 ? factor : (int16_t)0;
}

// `sums` are the accumulators behind this tap.
template <class T>
inline void accumulate_vector(const Slice<T> &slice, const StepControl &c, uint64_t vector,
                              int8_t weight, const TableEntry &entry, Lanes<T> &sums) {
  const int8_t factor = c.is_max ? (int8_t)(weight != 0) : weight;
  for (int p = 0; p < T::lanes; p += 2) {
#pragma HLS unroll
    int32_t p0, p1;
    multiply_pair(factor_of_lane(vector, p, entry, c.is_max),
                  factor_of_lane(vector, p + 1, entry, c.is_max), factor, p0, p1);
    sums.v[p] = accumulate<T>(slice.acc.v[p], p0, c.is_max);
    sums.v[p + 1] = accumulate<T>(slice.acc.v[p + 1], p1, c.is_max);
  }
}

// Which of the words that go out a slice stores.
struct Stored {
  bool enable;
  uint16_t word;
  uint8_t which;
};

// MOVE: the masked bytes of the vector replace those of the word, or of ready[0] if it is empty.
// Otherwise the word that goes out. All come through one four-way select per bit, with a select
// in front of it where more than two words can go out.
template <int count>
inline uint64_t next_word(uint64_t word, bool fresh, uint64_t vector, uint8_t lane_mask,
                          bool is_move, const uint64_t (&ready)[count], uint8_t which) {
  uint64_t even[count], odd[count];
#pragma HLS array_partition variable=even complete
#pragma HLS array_partition variable=odd complete
  for (int k = 0; k < count; k++) {
#pragma HLS unroll
    even[k] = ready[k & ~1];
    odd[k] = ready[(k | 1) & (count - 1)];
  }
  const int pair = is_move ? 0 : which & ~1;
  const uint64_t first = select_value<count>(even, pair), second = select_value<count>(odd, pair);
  const bool is_odd = which & 1 & (count - 1);
  uint64_t next = 0;
  for (int p = 0; p < WORD_BYTES; p++) {
#pragma HLS unroll
    const bool masked = (lane_mask >> p) & 1;
    const bool high = !is_move || (fresh && !masked), low = is_move ? masked : is_odd;
    const uint8_t here = (uint8_t)(word >> (8 * p)), there = (uint8_t)(vector >> (8 * p));
    const uint8_t ready_first = (uint8_t)(first >> (8 * p)), ready_second = (uint8_t)(second >> (8 * p));
    const uint8_t byte = high ? (low ? ready_second : ready_first) : (low ? there : here);
    next |= (uint64_t)byte << (8 * p);
  }
  return next;
}

// Where a slice's tap stands: `index` is that of its table entry.
struct Tap {
  int8_t weight;
  int16_t index;
  uint16_t address;
  TableEntry entry;
};

template <class T>
inline Tap next_tap(Slice<T> &slice, const StepControl &c, const uint64_t (&list)[2 * T::list_words],
                    const uint32_t (&table)[T::table_entries]) {
  const Code code =
      unpack_code(list[c.list_index & (2 * T::list_words - 1)], c.sparse, c.slot);
  const uint8_t run = c.sparse && !c.is_move ? code.run : (uint8_t)0;
  const Position position = advance(slice.position, run, c.table_entries, c.group_step);
  slice.position = c.starts ? POSITION_START : position;
  const uint64_t table_word = table[position.index & (T::table_entries - 1)];
  Tap tap;
  tap.index = position.index;
  tap.entry = decode_table_entry(&table_word);
  tap.address = (uint16_t)((slice.channel.src_base + c.offset) +
                           (position.group + tap.entry.offset));
  // codes behind the list's end, and cycles that wait for the drain, have weight 0
  tap.weight = c.step < slice.channel.num_codes ? code.weight : (int8_t)0;
  return tap;
}

}  // namespace rasna

#endif
