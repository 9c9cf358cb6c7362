// Requantize: int32 accumulator -> one byte. docs/machine.md, TAPS. A PRODUCT goes through the same
// multiplier, but both factors come out of the accumulator.
#ifndef RASNA_HLS_REQUANTIZE_H
#define RASNA_HLS_REQUANTIZE_H

#include <stdint.h>

#include "isa.h"

namespace rasna {

// What is the same for all lanes of a channel. Values are worked on as sign and magnitude, where
// the magnitude of a negative x is ~x: shifting it right rounds down like an arithmetic shift, fills
// with zeros, and a value does not fit if it has a bit in one of the masks: no comparison.
struct Requantizer {
  int pre_shift, shift;
  int64_t factor, half;
  uint32_t above_t;            // bits of the accumulator that ib bits behind pre_shift do not have
  uint32_t largest_t;          // 2^(ib-1) - 1
  uint64_t above_v;            // bits of the product that 16 bits behind `shift` do not have
  int16_t clamp_lo, clamp_hi;
};

inline Requantizer requantizer(int ib, int pre_shift, int multiplier, int shift, int16_t clamp_lo,
                               int16_t clamp_hi) {
  const uint64_t all = ~(uint64_t)0;
  Requantizer r;
  r.pre_shift = pre_shift & 31;
  r.shift = shift & 31;
  r.factor = multiplier & 0x7fff;
  // 40 bits and a sign at most; a shift of a 64-bit 1 would not say so
  r.half = (int64_t)((uint32_t)1 << ((shift - 1) & 31));
  r.above_t = (uint32_t)(all << (((ib - 1) & 31) + r.pre_shift));
  r.largest_t = (uint32_t)(((uint32_t)1 << ((ib - 1) & 31)) - 1);
  r.above_v = all << (15 + r.shift);
  r.clamp_lo = clamp_lo;
  r.clamp_hi = clamp_hi;
  return r;
}

// What the multiplier of a lane takes: 24 bits and 16 bits, signed.
struct Factors {
  int32_t t;
  int32_t factor;
};

// t = saturate(acc >> pre_shift), times the channel's multiplier.
inline Factors factors_of_sum(int32_t acc, const Requantizer &r) {
  const uint32_t t_sign = (uint32_t)(acc >> 31), t_bits = (uint32_t)acc ^ t_sign;
  const bool t_fits = (t_bits & r.above_t) == 0;
  const uint32_t magnitude = (t_fits ? t_bits >> r.pre_shift : r.largest_t) & 0x7fffff;
  const Factors factors = {(int32_t)((magnitude ^ t_sign) << 8) >> 8,  // ib is at most 24
                           (int32_t)r.factor};
  return factors;
}

// acc = x + 512 * g: the low bits as a signed number, and those above behind its borrow.
inline Factors factors_of_pair(int32_t acc) {
  constexpr int unused = 32 - PRODUCT_BITS;
  const uint32_t borrow = ((uint32_t)acc >> (PRODUCT_BITS - 1)) & 1;
  const uint32_t above = ((uint32_t)acc >> PRODUCT_BITS) + borrow;
  const Factors factors = {(int32_t)((uint32_t)acc << unused) >> unused,
                           (int32_t)(above << unused) >> unused};
  return factors;
}

// The low byte of clamp((t * factor + half) >> shift). One DSP48 (25 x 18 bits) makes product and
// sum.
inline uint8_t round_product(const Factors &factors, const Requantizer &r) {
  const int64_t factor = (int64_t)(int16_t)factors.factor;
  const int64_t product = (int64_t)factors.t * factor + r.half;
  const bool negative = product < 0;
  const uint64_t v_sign = (uint64_t)(product >> 63), v_bits = (uint64_t)product ^ v_sign;
  const bool v_fits = (v_bits & r.above_v) == 0;
  const int16_t v = (int16_t)(((v_bits >> r.shift) & 0x7fff) ^ v_sign);
  const bool low = v_fits ? v < r.clamp_lo : negative, high = v_fits ? v > r.clamp_hi : !negative;
  return (uint8_t)(low ? r.clamp_lo : high ? r.clamp_hi : v);
}

inline uint8_t requantize(int32_t acc, const Requantizer &r) {
  return round_product(factors_of_sum(acc, r), r);
}

}  // namespace rasna

#endif
