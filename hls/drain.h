// Drain: takes the sums of the finished tile, one slice of every group per cycle, while the next tile
// accumulates: adds where they start from, then keeps them or requantizes them.
#ifndef RASNA_HLS_DRAIN_H
#define RASNA_HLS_DRAIN_H

#include <stdint.h>

#include "config.h"
#include "curve.h"
#include "map_memory.h"
#include "requantize.h"
#include "slice.h"
#include "walk.h"

namespace rasna {

// How the words of a tile follow one another: `together` words leave in the same iteration, of
// stripes that are one part apart.
struct DrainSteps {
  uint8_t together_log2;
  uint8_t last_stripe;  // of the first part
  uint8_t copies;       // of a stripe
  int32_t part_rows;    // from a word's row to that of the next one that leaves with it
  uint16_t part_words;  // the same in words of the destination
};

template <class T>
inline DrainSteps drain_steps(const Taps &f) {
  const int stripes = 1 << (f.stripes_log2 & 7) >> f.drain_log2;
  DrainSteps steps;
  steps.together_log2 = f.drain_log2;
  steps.last_stripe = (uint8_t)(stripes - 1);
  steps.copies = (uint8_t)(1 << copies_log2<T>(f.stripes_log2));
  steps.part_rows = narrow_row(stripes * (int32_t)f.tile_rows);
  steps.part_words = (uint16_t)((uint32_t)steps.part_rows * (uint32_t)f.out_row_step);
  return steps;
}

// What is left of the tile: for every copy its stripes of the first part. What leaves with a word
// lies so many slices behind it.
struct Drain {
  uint16_t left;    // iterations
  bool nearly_done; // at most one is left
  uint8_t slice, copy, stripe;
  uint8_t round;   // number of the tile's round modulo RECORD_ROUNDS
  uint16_t acc_index;
  uint16_t x;
  bool last_word;  // of a row: lanes behind last_lanes are filled
  int32_t first_row, row;
};

inline void drain_begin(Drain &drain, uint16_t num_words, uint8_t round, uint16_t acc_index,
                        const Tile &tile) {
  drain.left = num_words;
  drain.nearly_done = num_words <= 1;
  drain.slice = drain.copy = drain.stripe = 0;
  drain.round = round;
  drain.acc_index = acc_index;
  drain.x = tile.word;
  drain.last_word = tile.last_word;
  drain.first_row = drain.row = (int32_t)tile.row;
}

inline void drain_advance(Drain &drain, const DrainSteps &steps, uint16_t tile_rows) {
  const bool stripe_ends = drain.stripe == steps.last_stripe;
  drain.row = stripe_ends ? drain.first_row : drain.row + (int32_t)tile_rows;
  drain.stripe = stripe_ends ? (uint8_t)0 : (uint8_t)(drain.stripe + 1);
  drain.slice = (uint8_t)(stripe_ends ? drain.copy + 1 : drain.slice + steps.copies);
  drain.copy = stripe_ends ? (uint8_t)(drain.copy + 1) : drain.copy;
  drain.nearly_done = drain.left <= 2;
  drain.left = drain.left == 0 ? (uint16_t)0 : (uint16_t)(drain.left - 1);
}

// One word of 8 requantized bytes; of 8 products for PRODUCT.
template <class T>
inline uint64_t requantize_word(const Lanes<T> &acc, const Requantizer &r, bool is_product) {
  uint64_t word = 0;
  for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
    const Factors of_sum = factors_of_sum(acc.v[p], r), of_pair = factors_of_pair(acc.v[p]);
    const Factors factors = {is_product ? of_pair.t : of_sum.t,
                             is_product ? of_pair.factor : of_sum.factor};
    word |= (uint64_t)round_product(factors, r) << (8 * p);
  }
  return word;
}

// Words that leave together: of the same channel and word of a row.
template <class T>
struct DrainedWords {
  uint64_t data[T::drain_words];
  bool enable[T::drain_words];  // the row is one that is written
  bool last_word;               // of its row: lanes behind last_lanes are filled
  bool upper;                   // with out_split: it goes to the upper halves
  int32_t row;    // destination row of the first one
  uint16_t word;  // its word address without the stripe's origin
};

// start + sum; for MAX the larger of start and what the nine bits of `sum` stand for. The adder
// compares: start + ~pixel is negative if start <= pixel.
inline int32_t add_start(int32_t start, int32_t sum, bool is_max) {
  const int32_t nine = sum & MAX_MASK;
  const int32_t pixel = nine - 256;
  const int32_t addend = is_max ? ~pixel : sum;
  const int64_t total = (int64_t)addend + (int64_t)start;
  const int32_t larger = nine != 0 && total < 0 ? pixel : start;
  return is_max ? larger : (int32_t)total;
}

// The accumulators of slice `index` of a group. With `keep` they go where those of the next
// instruction start, if it says so.
template <class T>
inline Lanes<T> finish_sums(const Drain &drain, const Taps &f, int32_t bias, int group, bool keeps,
                            const Lanes<T> (&shadow)[T::slices],
                            typename Memory<T>::Accumulator &acc_mem) {
  constexpr int count = group_slices<T>();
  const int index = drain.slice & (count - 1);
  const int number =
      (int)((uint32_t)(drain.acc_index & (T::acc_tiles - 1)) << group_slices_log2<T>()) | index;
  Lanes<T> acc;
  for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
    int32_t lane[count];
#pragma HLS array_partition variable=lane complete
    for (int s = 0; s < count; s++) {
#pragma HLS unroll
      lane[s] = shadow[group * count + s].v[p];
    }
    const int32_t kept = acc_mem[group][p][number];
    const int32_t sum = narrow_sum<T>(select_value<count>(lane, index));
    acc.v[p] = add_start(f.acc_init ? kept : bias, sum, f.func == FUNC_MAX);
    if (keeps) acc_mem[group][p][number] = acc.v[p];
  }
  return acc;
}

// One iteration of the drain: every group has a word, of which those whose turn it is leave.
template <class T>
inline DrainedWords<T> drain_words(const Drain &drain, const DrainSteps &steps, const Taps &f,
                                   const Destination &d, const Lanes<T> (&shadow)[T::slices],
                                   const typename Memory<T>::Record &record_mem,
                                   const typename Memory<T>::Curve &curve_mem,
                                   typename Memory<T>::Accumulator &acc_mem) {
  const int number = drain.round * T::slices + (drain.copy & (T::slices - 1));
  const uint64_t words[2] = {record_mem[0][number], record_mem[1][number]};
  const ChannelRecord record = decode_channel_record(words);
  const Requantizer r = requantizer(f.ib, record.pre_shift, record.multiplier, record.shift,
                                    f.clamp_lo, f.clamp_hi);
  // groups take turns if fewer words leave together than there are groups
  const int turns_log2 = (T::drain_words_log2 - steps.together_log2) & 3;
  const int turn = drain.slice >> group_slices_log2<T>();
  uint64_t data[T::drain_words];
#pragma HLS array_partition variable=data complete
  for (int g = 0; g < T::drain_words; g++) {
#pragma HLS unroll
    const bool has_turn = (g & ((1 << turns_log2) - 1)) == turn;
    const bool keeps = f.acc_keep != 0 && drain.left != 0 && has_turn;
    const Lanes<T> acc = finish_sums<T>(drain, f, record.bias, g, keeps, shadow, acc_mem);
    data[g] = requantize_word<T>(acc, r, f.func == FUNC_PRODUCT);
  }
  DrainedWords<T> out;
  for (int k = 0; k < T::drain_words; k++) {
#pragma HLS unroll
    const int32_t row = drain.row + (int32_t)k * steps.part_rows;
    const uint64_t word = select_value<T::drain_words>(data, (k << turns_log2) | turn);
    const uint64_t curved = apply_curve<T>(word, k, curve_mem);
    out.data[k] = f.curve ? curved : word;
    out.enable[k] = k >> steps.together_log2 == 0 && row >= (int32_t)f.row_first &&
                    row < (int32_t)f.row_limit;
  }
  out.last_word = drain.last_word;
  out.upper = (drain.x & 1) != 0;
  out.row = drain.row + (int32_t)d.row;
  out.word = (uint16_t)(d.base + (uint32_t)record.out_channel * (uint32_t)d.channel_step +
                        (uint32_t)out.row * (uint32_t)d.row_step + word_of_row(drain.x, d.split));
  return out;
}

// Into the slot of this iteration, and out of that of DRAIN_DELAY iterations ago.
template <class T>
inline void put_drained(typename Memory<T>::Drained &drained_mem, uint8_t slot,
                        const DrainedWords<T> &words) {
  const int index = slot & (DRAIN_SLOTS - 1);
  uint64_t flags = (words.last_word ? 1 : 0) | (words.upper ? 2 : 0);
  for (int k = 0; k < T::drain_words; k++) {
#pragma HLS unroll
    flags |= words.enable[k] ? (uint64_t)4 << k : 0;
    drained_mem[1 + k][index] = words.data[k];
  }
  drained_mem[0][index] = flags << 48 | (uint64_t)(uint32_t)words.row << 16 | (uint64_t)words.word;
}

// `ready` is whether words were put there.
template <class T>
inline DrainedWords<T> take_drained(const typename Memory<T>::Drained &drained_mem, uint8_t slot,
                                    bool ready) {
  const int index = ((int)slot - DRAIN_DELAY) & (DRAIN_SLOTS - 1);
  const uint64_t place = drained_mem[0][index];
  DrainedWords<T> words;
  for (int k = 0; k < T::drain_words; k++) {
#pragma HLS unroll
    words.data[k] = drained_mem[1 + k][index];
    words.enable[k] = ready && (place >> (50 + k)) & 1;
  }
  words.last_word = (place >> 48) & 1;
  words.upper = (place >> 49) & 1;
  words.row = (int32_t)(uint32_t)(place >> 16);
  words.word = (uint16_t)place;
  return words;
}

}  // namespace rasna

#endif
