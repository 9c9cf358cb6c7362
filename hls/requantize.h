// Requantize: int32 accumulator -> one byte. docs/machine.md, TAPS.
#ifndef RASNA_HLS_REQUANTIZE_H
#define RASNA_HLS_REQUANTIZE_H

#include <stdint.h>

namespace rasna {

// What is the same for all channels of an instruction.
struct RequantizeLimits {
  int32_t t_lo, t_hi;          // the saturated intermediate value, ib bits
  int16_t clamp_lo, clamp_hi;  // the output value
};

inline RequantizeLimits requantize_limits(int ib, int16_t clamp_lo, int16_t clamp_hi) {
  const int32_t t_hi = (int32_t)(((uint32_t)1 << ((ib - 1) & 31)) - 1);
  const RequantizeLimits limits = {-t_hi - 1, t_hi, clamp_lo, clamp_hi};
  return limits;
}

// t = saturate(acc >> pre_shift); clamp((t * multiplier + (1 << (shift - 1))) >> shift).
// One DSP48 (25 x 18 bits) makes the product.
inline int16_t requantize(int32_t acc, int pre_shift, int multiplier, int shift,
                          const RequantizeLimits &limits) {
  int32_t t = acc >> (pre_shift & 31);
  t = t < limits.t_lo ? limits.t_lo : t;
  t = t > limits.t_hi ? limits.t_hi : t;
  // at most 24 bits and 15 bits: says so, because a limit in a register says nothing of its size
  t = (int32_t)((uint32_t)t << 8) >> 8;
  const int64_t factor = multiplier & 0x7fff;
  // 40 bits and a sign at most; a shift of a 64-bit 1 would not say so
  const int64_t half = (int64_t)((uint32_t)1 << ((shift - 1) & 31));
  const int64_t scaled = ((int64_t)t * factor + half) >> (shift & 31);
  const int64_t lo = limits.clamp_lo, hi = limits.clamp_hi;
  const int64_t raised = scaled < lo ? lo : scaled;
  return (int16_t)(raised > hi ? hi : raised);
}

}  // namespace rasna

#endif
