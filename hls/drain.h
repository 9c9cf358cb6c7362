// Drain: takes the sums of the finished tile, one slice per cycle, while the next tile accumulates:
// adds where they start from, then keeps them or requantizes them.
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

// Words that are left of the tile, in the order of the slices.
struct Drain {
  uint16_t left;
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

inline void drain_advance(Drain &drain, uint8_t last_stripe, uint16_t tile_rows) {
  const bool stripe_ends = drain.stripe == last_stripe;
  drain.row = stripe_ends ? drain.first_row : drain.row + (int32_t)tile_rows;
  drain.stripe = stripe_ends ? (uint8_t)0 : (uint8_t)(drain.stripe + 1);
  drain.copy = stripe_ends ? (uint8_t)(drain.copy + 1) : drain.copy;
  drain.slice = (uint8_t)(drain.slice + 1);
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

struct DrainedWord {
  uint64_t data;
  bool enable;     // the row is one that is written
  bool last_word;  // of its row: lanes behind last_lanes are filled
  int32_t row;    // destination row
  uint16_t word;  // word address without the stripe's origin
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

// The accumulators of the drain's slice. With `keep` they go where those of the next instruction
// start, if it says so.
template <class T>
inline Lanes<T> finish_sums(const Drain &drain, const Taps &f, int32_t bias,
                            const Lanes<T> (&shadow)[T::slices],
                            typename Memory<T>::Accumulator &acc_mem) {
  const int number = (int)((uint32_t)(drain.acc_index & (T::acc_tiles - 1)) << T::slices_log2) |
                     (drain.slice & (T::slices - 1));
  const bool keeps = f.acc_keep != 0 && drain.left != 0;
  Lanes<T> acc;
  for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
    int32_t lane[T::slices];
#pragma HLS array_partition variable=lane complete
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      lane[s] = shadow[s].v[p];
    }
    const int32_t kept = acc_mem[p][number];
    const int32_t sum = narrow_sum<T>(select_slice<T>(lane, drain.slice));
    acc.v[p] = add_start(f.acc_init ? kept : bias, sum, f.func == FUNC_MAX);
    if (keeps) acc_mem[p][number] = acc.v[p];
  }
  return acc;
}

template <class T>
inline DrainedWord drain_word(const Drain &drain, const Taps &f, const Destination &d,
                              const Lanes<T> (&shadow)[T::slices],
                              const typename Memory<T>::Record &record_mem,
                              const typename Memory<T>::Curve &curve_mem,
                              typename Memory<T>::Accumulator &acc_mem) {
  const int number = drain.round * T::slices + (drain.copy & (T::slices - 1));
  const uint64_t words[2] = {record_mem[0][number], record_mem[1][number]};
  const ChannelRecord record = decode_channel_record(words);
  const Lanes<T> acc = finish_sums<T>(drain, f, record.bias, shadow, acc_mem);
  const Requantizer r = requantizer(f.ib, record.pre_shift, record.multiplier, record.shift,
                                    f.clamp_lo, f.clamp_hi);
  DrainedWord out;
  const uint64_t word = requantize_word<T>(acc, r, f.func == FUNC_PRODUCT);
  const uint64_t curved = apply_curve<T>(word, curve_mem);
  out.data = f.curve ? curved : word;
  out.last_word = drain.last_word;
  out.enable = drain.row >= (int32_t)f.row_first && drain.row < (int32_t)f.row_limit;
  out.row = drain.row + (int32_t)d.row;
  out.word = (uint16_t)(d.base + (uint32_t)record.out_channel * (uint32_t)d.channel_step +
                        (uint32_t)out.row * (uint32_t)d.row_step + drain.x);
  return out;
}

// Into the slot of this iteration, and out of that of DRAIN_DELAY iterations ago.
template <class T>
inline void put_drained(typename Memory<T>::Drained &drained_mem, uint8_t slot,
                        const DrainedWord &word) {
  const int index = slot & (DRAIN_SLOTS - 1);
  const uint64_t enable = (word.enable ? (uint64_t)1 << 48 : 0) |
                          (word.last_word ? (uint64_t)1 << 49 : 0);
  drained_mem[0][index] = word.data;
  drained_mem[1][index] = enable | (uint64_t)(uint32_t)word.row << 16 | (uint64_t)word.word;
}

template <class T>
inline DrainedWord take_drained(const typename Memory<T>::Drained &drained_mem, uint8_t slot) {
  const int index = ((int)slot - DRAIN_DELAY) & (DRAIN_SLOTS - 1);
  const uint64_t place = drained_mem[1][index];
  DrainedWord word;
  word.data = drained_mem[0][index];
  word.enable = (place >> 48) & 1;
  word.last_word = (place >> 49) & 1;
  word.row = (int32_t)(uint32_t)(place >> 16);
  word.word = (uint16_t)place;
  return word;
}

}  // namespace rasna

#endif
