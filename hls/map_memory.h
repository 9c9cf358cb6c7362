// Map memory: even and odd word banks, the byte funnel, and the rule where a word is stored.
#ifndef RASNA_HLS_MAP_MEMORY_H
#define RASNA_HLS_MAP_MEMORY_H

#include <stdint.h>

#include "config.h"

namespace rasna {

// The memories of one slice: bank, half of the word, number of the word in its bank.
template <class T>
using MapBanks = uint32_t[2][2][T::map_words / 2];

// ---------------------------------------------------------------- reading

template <class Value>
inline Value select_quarter(Value v0, Value v1, Value v2, Value v3, int index) {
  const Value low = index & 1 ? v1 : v0, high = index & 1 ? v3 : v2;
  return index & 2 ? high : low;
}

// The vector of 8 bytes at any byte address: word w = address / 8 and the word behind it. One of
// the two is even and one odd, so each bank is read once: even bank at (w + 1) / 2, odd at w / 2.
// The 16 bytes of both are a ring, from which 8 are taken from any place on: first from a multiple
// of four, then from 0 to 3; each is a four-way select per bit.
template <class T>
inline uint64_t read_vector(const MapBanks<T> &banks, uint16_t address) {
  constexpr int mask = T::map_words / 2 - 1;
  const int word = address >> 3;
  const int even = ((word + 1) >> 1) & mask, odd = (word >> 1) & mask;
  const uint32_t quarter[4] = {banks[0][0][even], banks[0][1][even], banks[1][0][odd],
                               banks[1][1][odd]};
  const int first = (address >> 2) & 3, byte = address & 3;
  const uint64_t low = select_quarter(quarter[0], quarter[1], quarter[2], quarter[3], first);
  const uint64_t middle = select_quarter(quarter[1], quarter[2], quarter[3], quarter[0], first);
  const uint64_t high = select_quarter(quarter[2], quarter[3], quarter[0], quarter[1], first);
  const uint64_t v0 = low | middle << 32;
  const uint64_t v1 = low >> 8 | middle << 24 | high << 56;
  const uint64_t v2 = low >> 16 | middle << 16 | high << 48;
  const uint64_t v3 = low >> 24 | middle << 8 | high << 40;
  return select_quarter(v0, v1, v2, v3, byte);
}

// A word of one bank; `index` is its number there.
template <class T>
inline uint64_t read_bank(const MapBanks<T> &banks, int bank, int index) {
  return (uint64_t)banks[bank][0][index] | (uint64_t)banks[bank][1][index] << 32;
}

// Lane p of a vector as a number.
inline int16_t lane_value(uint64_t vector, int lane, bool is_signed) {
  const uint8_t byte = (uint8_t)(vector >> (8 * lane));
  return is_signed ? (int16_t)(int8_t)byte : (int16_t)byte;
}

// ---------------------------------------------------------------- writing

// What is written in a cycle, the same for all slices, which only add where their rows lie: a word
// into the bank of its number; a part of a split word into a half of each bank; or, by FILL, two
// words of equal bytes, one into each bank.
struct BankWrite {
  bool both;         // both banks, each with its own half of the data in both halves
  bool half[2];      // halves that are written
  uint16_t word[2];  // what each bank gets goes there
};

// With `split` or `pair` a second word is written, `phase_step` behind `word` and so in the other
// bank. Which bank that is has to be the same in all slices: for a split word the steps of channels
// and rows are even, and FILL has no stripes.
inline BankWrite bank_write(bool split, bool pair, uint16_t word, bool upper, uint16_t phase_step) {
  const bool odd = (word & 1) != 0;
  const uint16_t other = (uint16_t)(word + phase_step);
  BankWrite write;
  write.both = split || pair;
  write.half[0] = !split || !upper;
  write.half[1] = !split || upper;
  write.word[0] = write.both && odd ? other : word;
  write.word[1] = write.both && !odd ? other : word;
  return write;
}

// The even bytes of a word in the low half, the odd ones in the upper half.
inline uint64_t part_bytes(uint64_t word) {
  uint64_t parts = 0;
  for (int p = 0; p < WORD_BYTES; p++) {
#pragma HLS unroll
    const int place = (p & 1) * (WORD_BYTES / 2) + (p >> 1);
    parts |= ((word >> (8 * p)) & 0xff) << (8 * place);
  }
  return parts;
}

// What the halves of a split word are: bank 0 gets the low half, bank 1 the upper one.
inline uint64_t split_word(uint64_t word, uint16_t address) {
  const uint64_t parts = part_bytes(word);
  return address & 1 ? parts >> 32 | parts << 32 : parts;
}

// `offset` is what the slice adds to the addresses of `write`.
template <class T>
inline void write_banks(MapBanks<T> &banks, bool enable, const BankWrite &write, uint16_t offset,
                        uint64_t data) {
  constexpr int mask = T::map_words / 2 - 1;
  const uint32_t low = (uint32_t)data, high = (uint32_t)(data >> 32);
  const uint32_t parts[2][2] = {{low, write.both ? low : high}, {write.both ? high : low, high}};
  for (int bank = 0; bank < 2; bank++) {
#pragma HLS unroll
    const uint16_t word = (uint16_t)(write.word[bank] + offset);
    const int index = (word >> 1) & mask;
    for (int half = 0; half < 2; half++) {
#pragma HLS unroll
      const bool writes = enable && write.half[half] && (write.both || (word & 1) == bank);
      if (writes) banks[bank][half][index] = parts[bank][half];
    }
  }
}

// The destination fields of TAPS and LOAD.
struct Destination {
  uint16_t base, channel_step, row_step, rows, halo_top, local_rows, height;
  int16_t row;
  bool circular;
  uint8_t stripes_log2;
  bool split;
  uint16_t phase_step;
};

constexpr Destination NO_DESTINATION = {0, 0, 0, 0, 0, 0, 0, 0, false, 0, false, 0};

template <class Fields>
inline Destination destination_of(const Fields &f) {
  const Destination d = {f.out_base,       f.out_channel_step, f.out_row_step, f.out_rows,
                         f.out_halo_top,   f.out_local_rows,   f.out_height,   f.out_row,
                         f.circular_rows != 0, f.out_stripes_log2, f.out_split != 0,
                         f.out_phase_step};
  return d;
}

// What a stripe adds to a row number to get its local row, and that times row_step. Engine keeps
// those of all slices in one set of registers, which LOAD, FILL and TAPS set before they use them.
struct StripeOrigin {
  int32_t rows;  // ROW_BITS
  uint16_t words;
};

// Rows have 16 bits, stripes at most 7: local rows and what leads to them fit 24 bits and a sign.
constexpr int ROW_BITS = 25;

inline int32_t narrow_row(int32_t row) {
  return (int32_t)((uint32_t)row << (32 - ROW_BITS)) >> (32 - ROW_BITS);
}

inline StripeOrigin first_origin(const Destination &d) {
  const StripeOrigin origin = {(int32_t)d.halo_top,
                               (uint16_t)((uint32_t)d.halo_top * (uint32_t)d.row_step)};
  return origin;
}

// From one stripe's origin to the next; products are made once, outside of any loop.
struct OriginSteps {
  int32_t rows, wrapped_rows;
  uint16_t words, wrapped_words;
};

inline OriginSteps origin_steps(const Destination &d) {
  const int32_t rows = -(int32_t)d.rows;
  const int32_t wrapped_rows = rows + (int32_t)d.height;
  const OriginSteps steps = {rows, wrapped_rows, (uint16_t)((uint32_t)rows * (uint32_t)d.row_step),
                             (uint16_t)((uint32_t)wrapped_rows * (uint32_t)d.row_step)};
  return steps;
}

// Circular origins stay within 0 ... height, so that a row needs one comparison to come back into
// the map.
inline StripeOrigin next_origin(StripeOrigin origin, const OriginSteps &steps, bool circular) {
  const int32_t straight = origin.rows + steps.rows;
  const bool wraps = circular && straight < 0;
  StripeOrigin next;
  next.rows = narrow_row(wraps ? origin.rows + steps.wrapped_rows : straight);
  next.words = (uint16_t)(origin.words + (wraps ? steps.wrapped_words : steps.words));
  return next;
}

// Where word x of a row lies in it.
inline uint16_t word_of_row(uint16_t x, bool split) { return split ? (uint16_t)(x >> 1) : x; }

struct Place {
  bool stored;
  uint16_t word;
};

// write_word of docs/machine.md for one stripe. `word` is out_base + c*out_channel_step +
// row*out_row_step + x (x >> 1 with out_split), the same for all stripes.
inline Place place_row(int32_t row, uint16_t word, StripeOrigin origin, const Destination &d) {
  const int32_t straight = narrow_row(row + origin.rows);
  const bool wraps = d.circular && straight >= (int32_t)d.height;
  // local rows from 0 on: of a row that wraps the height is not taken off, but added to the limit
  const int32_t limit = (int32_t)d.height + (int32_t)d.local_rows;
  const uint16_t back = (uint16_t)((uint32_t)d.height * (uint32_t)d.row_step);
  Place place;
  place.stored = wraps ? straight < limit : (uint32_t)straight < (uint32_t)d.local_rows;
  place.word = (uint16_t)(word + origin.words - (wraps ? back : (uint16_t)0));
  return place;
}

// Copies of a stripe are neighbours: log2 of their number, and the first one.
template <class T>
inline int copies_log2(int stripes_log2) {
  return (T::slices_log2 - stripes_log2) & 7;
}

template <class T>
inline int first_copy(int stripe, int stripes_log2) {
  return stripe << copies_log2<T>(stripes_log2);
}

// Origins of all slices, one stripe per cycle.
template <class T>
inline void set_origins(const Destination &d, StripeOrigin (&origins)[T::slices]) {
  StripeOrigin origin = first_origin(d);
  const OriginSteps steps = origin_steps(d);
  const int num_stripes = 1 << (d.stripes_log2 & 7);
  for (int stripe = 0; stripe < num_stripes; stripe++) {
#pragma HLS pipeline II=1
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      if (s >> copies_log2<T>(d.stripes_log2) == stripe) origins[s] = origin;
    }
    origin = next_origin(origin, steps, d.circular);
  }
}

// Bytes behind the last valid lane of a row's last word are replaced.
inline uint64_t fill_lanes(uint64_t word, int valid_lanes, uint8_t fill) {
  uint64_t filled = 0;
  for (int p = 0; p < WORD_BYTES; p++) {
#pragma HLS unroll
    const uint64_t byte = p < valid_lanes ? (word >> (8 * p)) & 0xff : (uint64_t)fill;
    filled |= byte << (8 * p);
  }
  return filled;
}

// values[index] as a tree of two-way selects: slices are separate memories or registers, which an
// index cannot reach. `count` is a power of two.
template <int count, class Value>
inline Value select_value(const Value (&values)[count], int index) {
  Value level[count];
#pragma HLS array_partition variable=level complete
  for (int s = 0; s < count; s++) {
#pragma HLS unroll
    level[s] = values[s];
  }
  for (int bit = 0; bit < 7; bit++) {
#pragma HLS unroll
    for (int s = 0; s < count / 2; s++) {
#pragma HLS unroll
      if (s < count >> (bit + 1)) {
        const Value even = level[2 * s], odd = level[2 * s + 1];
        level[s] = (index >> bit) & 1 ? odd : even;
      }
    }
  }
  return level[0];
}

}  // namespace rasna

#endif
