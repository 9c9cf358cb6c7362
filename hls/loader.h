// Loader: takes the channel records and lists of the next round from the stream, a word per cycle,
// while the current round computes.
#ifndef RASNA_HLS_LOADER_H
#define RASNA_HLS_LOADER_H

#include <stdint.h>

#include "config.h"

namespace rasna {

enum LoaderPhase { LOADER_FIRST = 0, LOADER_SECOND = 1, LOADER_LIST = 2 };

// Scalars of the loader. `busy` falls in the cycle after the last word of the round, which gives
// num_codes one cycle to arrive before a round is started.
struct Loader {
  bool busy;
  uint8_t phase;
  uint8_t round;            // number of the round modulo RECORD_ROUNDS
  uint8_t copy, last_copy;  // channel within the round
  uint16_t list_left, list_index;
  uint16_t channels_left;   // channels of the instruction that are in no round yet
  uint16_t longest;         // most codes of a channel of the round
};

inline uint8_t next_round(uint8_t round) { return (uint8_t)((round + 1) & (RECORD_ROUNDS - 1)); }

// What a slice needs of its channel record.
struct SliceChannel {
  int32_t bias;
  uint16_t src_base, num_codes;
};

inline Loader loader_idle(uint16_t num_channels) {
  const Loader loader = {false, LOADER_FIRST, 0, 0, 0, 0, 0, num_channels, 0};
  return loader;
}

// Begin with the next `copies` channels, or those that are left.
inline void loader_begin(Loader &loader, uint8_t round, int copies) {
  const bool full = (int)loader.channels_left >= copies;
  const uint16_t channels = full ? (uint16_t)copies : loader.channels_left;
  loader.busy = channels != 0;
  loader.phase = LOADER_FIRST;
  loader.round = round;
  loader.copy = 0;
  loader.last_copy = (uint8_t)(channels - 1);
  loader.channels_left = (uint16_t)(loader.channels_left - channels);
  loader.longest = 0;
}

// One word: into the slices of the copy that it belongs to (a shared list: into all slices).
template <class T>
inline void loader_take(const Loader &loader, uint64_t word, int stripes_log2, bool shared,
                        SliceChannel (&next)[T::slices], typename Memory<T>::List &list_mem,
                        typename Memory<T>::Record &record_mem) {
  const uint64_t words[2] = {word, word};
  const ChannelRecord record = decode_channel_record(words);
  const int half = shared ? 0 : loader.round & 1;
  const int index = half * T::list_words + (loader.list_index & (T::list_words - 1));
  const SliceChannel channel = {record.bias, record.src_base, record.num_codes};
  for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
    const bool mine = (s >> stripes_log2) == (int)loader.copy;
    if (mine && loader.phase == LOADER_FIRST) next[s] = channel;
    if ((mine || shared) && loader.phase == LOADER_LIST) list_mem[s][index] = word;
  }
  if (loader.phase == LOADER_SECOND) {
    record_mem[loader.round * T::slices + (loader.copy & (T::slices - 1))] = word;
  }
}

// The loader after that word.
inline void loader_advance(Loader &loader, uint64_t word) {
  const uint64_t words[2] = {word, word};
  const ChannelRecord record = decode_channel_record(words);
  const bool is_first = loader.phase == LOADER_FIRST, is_second = loader.phase == LOADER_SECOND;
  const bool longer = is_first && record.num_codes > loader.longest;
  const bool list_ends = is_second ? record.list_words == 0 : !is_first && loader.list_left == 1;
  const bool last = list_ends && loader.copy == loader.last_copy;
  loader.longest = longer ? record.num_codes : loader.longest;
  loader.list_left = is_second ? record.list_words : (uint16_t)(loader.list_left - 1);
  loader.list_index = is_second ? (uint16_t)0 : (uint16_t)(loader.list_index + 1);
  loader.phase = is_first ? LOADER_SECOND : list_ends ? LOADER_FIRST : LOADER_LIST;
  loader.copy = list_ends ? (uint8_t)(loader.copy + 1) : loader.copy;
  loader.busy = !last;
}

}  // namespace rasna

#endif
