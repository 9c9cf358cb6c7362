// What every unit of the accelerator shares: the target's rules and the shape of its memories.
#ifndef RASNA_HLS_CONFIG_H
#define RASNA_HLS_CONFIG_H

#include <stdint.h>

#include "isa.h"
#include "targets.h"

namespace rasna {

// A value that nobody looks at: hlsc then needs no logic for it.
#ifdef __HLSC__
extern "C" __attribute__((const)) uint64_t __hls_unspecified();
inline uint64_t unspecified() { return __hls_unspecified(); }
#else
inline uint64_t unspecified() { return 0; }
#endif

constexpr bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

template <class T>
struct CheckTarget {
  static_assert(T::lanes == WORD_BYTES, "a map word holds one byte per lane");
  static_assert(is_power_of_two(T::slices), "the number of slices must be a power of two");
  static_assert(T::slices <= 128, "stripes_log2 has three bits: at most 128 slices");
  static_assert(is_power_of_two(T::map_words), "map_words must be a power of two");
  static_assert(T::map_words >= 4 && T::map_words <= 4096, "byte addresses have 15 bits");
  static_assert(is_power_of_two(T::list_words), "list_words must be a power of two");
  static_assert(is_power_of_two(T::table_entries), "table_entries must be a power of two");
  static_assert(T::table_entries >= MIN_TABLE_ENTRIES, "one step must not wrap twice");
  static_assert(is_power_of_two(T::acc_tiles), "acc_tiles must be a power of two");
  static_assert(is_power_of_two(T::drain_words) && T::drain_words <= 8 && T::drain_words <= T::slices,
                "drain_words must be a power of two up to 8 and the slices");
  static constexpr bool ok = true;
};

// Bits of the sum that one list makes: its codes have 8 bits, and so have pixels.
template <class T>
constexpr int sum_bits() {
  static_assert(DENSE_CODES_PER_WORD == 8, "the 3 below");
  return 15 + 3 + T::list_words_log2 + 1;
}

// Records of three rounds are alive at once: one is loaded, one computes, one is drained.
constexpr int RECORD_ROUNDS = 4;

// A drained word is written this many iterations after its accumulators were read. That is about
// what requantizing takes: without the detour through a small memory, the words of MOVE and
// all that decides about writes would wait for it in registers, in every slice.
constexpr int DRAIN_DELAY = 12;
constexpr int DRAIN_SLOTS = 32;
static_assert(2 * DRAIN_DELAY <= DRAIN_SLOTS, "a slot rests DRAIN_DELAY iterations at least");

// Slices are drained in groups of neighbours, each with its own requantizer.
template <class T>
constexpr int group_slices() { return T::slices / T::drain_words; }
template <class T>
constexpr int group_slices_log2() { return T::slices_log2 - T::drain_words_log2; }

// The memories of one machine. They are plain arrays and come as references, so that hardware
// declares them static in a process and the simulator keeps them in a context.
template <class T>
struct Memory {
  static_assert(CheckTarget<T>::ok, "the target is legal");
  // Words with even number in bank 0, odd ones in bank 1: a vector of 8 bytes touches one of each.
  // A bank is two memories, one per half of its words: a split row writes halves.
  typedef uint32_t Map[T::slices][2][2][T::map_words / 2];
  // Two halves: one is read while the other receives the lists of the next round.
  typedef uint64_t List[T::slices][2 * T::list_words];
  // offset, lane_mask, is_signed and last of every entry; a copy per slice, for a port per slice.
  typedef uint32_t Table[T::slices][T::table_entries];
  typedef int16_t MoveOffset[T::table_entries];
  // Accumulators that are kept: a memory per lane and group, which handles one slice per cycle.
  typedef int32_t Accumulator[T::drain_words][T::lanes][T::acc_tiles * group_slices<T>()];
  // The channel records as the drain needs them: 0 the bias, 1 the second word.
  typedef uint64_t Record[2][RECORD_ROUNDS * T::slices];
  // What requantized bytes go through: a copy per lane of every word that leaves in a cycle.
  typedef uint64_t Curve[T::drain_words * T::lanes][CURVE_WORDS];
  // Words between requantizing and writing: 0 where they go, behind it the data of each.
  typedef uint64_t Drained[1 + T::drain_words][DRAIN_SLOTS];
};

}  // namespace rasna

#endif
