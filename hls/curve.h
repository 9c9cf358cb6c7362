// Curve: a byte for every value that a byte can have, looked up behind the requantizer.
#ifndef RASNA_HLS_CURVE_H
#define RASNA_HLS_CURVE_H

#include <stdint.h>

#include "config.h"

namespace rasna {

// Byte i of the curve is byte i mod 8 of word i / 8.
inline uint8_t curve_byte(const uint64_t (&curve)[CURVE_WORDS], uint8_t value) {
  const uint64_t word = curve[value >> 3];
  // levels of two-way selects: a shift by 8 * (value & 7) would be a shifter for any distance
  const uint32_t half = (uint32_t)(value & 4 ? word >> 32 : word);
  const uint16_t quarter = (uint16_t)(value & 2 ? half >> 16 : half);
  return (uint8_t)(value & 1 ? quarter >> 8 : quarter);
}

// Every lane of every word that leaves in a cycle has a copy, for a port each. `k` is the word's
// number.
template <class T>
inline uint64_t apply_curve(uint64_t word, int k, const typename Memory<T>::Curve &curve_mem) {
  uint64_t curved = 0;
  for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
    const uint8_t value = (uint8_t)(word >> (8 * p));
    curved |= (uint64_t)curve_byte(curve_mem[k * T::lanes + p], value) << (8 * p);
  }
  return curved;
}

template <class T, class Stream>
void curve_step(Stream &words, typename Memory<T>::Curve &curve_mem) {
  for (int i = 0; i < CURVE_WORDS; i++) {
#pragma HLS pipeline II=1
    const uint64_t word = words.read();
    for (int copy = 0; copy < T::drain_words * T::lanes; copy++) {
#pragma HLS unroll
      curve_mem[copy][i] = word;
    }
  }
}

}  // namespace rasna

#endif
