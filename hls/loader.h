// Loader: takes the channel records and lists of the next round from the stream, a word per cycle,
// while the current round computes.
#ifndef RASNA_HLS_LOADER_H
#define RASNA_HLS_LOADER_H

#include <stdint.h>

#include "config.h"
#include "map_memory.h"

namespace rasna {

// Scalars of the loader. Its round is there when no channel and no list word is left.
struct Loader {
  uint16_t rounds_left;    // rounds that it has not begun
  uint8_t round;           // number of the round modulo RECORD_ROUNDS
  uint8_t channels_left;   // of the round, whose record has not been taken
  bool second;             // the first word of a record was taken
  uint8_t copy, list_copy; // channel within the round: of the next record, of the last one
  uint16_t list_left, list_index;
  uint16_t newest;         // num_codes, if the last word was the first of a record
  uint16_t longest;        // most codes of a channel of the round
};

inline bool loader_busy(const Loader &loader) {
  return loader.list_left != 0 || loader.channels_left != 0;
}

// Channels of a round: of the last one, and of all before it.
struct RoundChannels {
  uint8_t final_round, full_round;
};

inline RoundChannels round_channels(uint16_t num_channels, int copies) {
  const int final_channels = (((int)num_channels - 1) & (copies - 1)) + 1;
  const RoundChannels channels = {(uint8_t)final_channels, (uint8_t)copies};
  return channels;
}

inline uint8_t next_round(uint8_t round) { return (uint8_t)((round + 1) & (RECORD_ROUNDS - 1)); }

// What a slice needs of its channel record.
struct SliceChannel {
  uint16_t src_base, num_codes;
};

// Small structs with flags come by reference here and in progress.h: returned by value, the
// compilers' calling conventions pack them into one wide register that every test takes apart.
inline void loader_idle(Loader &loader, uint16_t num_rounds) {
  loader.rounds_left = num_rounds;
  loader.round = RECORD_ROUNDS - 1;  // so that the first one is number 0
  loader.channels_left = loader.copy = loader.list_copy = 0;
  loader.second = false;
  loader.list_left = loader.list_index = loader.newest = loader.longest = 0;
}

// Begin with the next round, if there is one.
inline void loader_begin(Loader &loader, const RoundChannels &channels) {
  const bool exists = loader.rounds_left != 0;
  const uint8_t count = loader.rounds_left == 1 ? channels.final_round : channels.full_round;
  loader.channels_left = exists ? count : (uint8_t)0;
  loader.rounds_left = (uint16_t)(loader.rounds_left - (exists ? 1 : 0));
  loader.round = next_round(loader.round);
  loader.copy = 0;
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
  const bool is_list = loader.list_left != 0;
  const SliceChannel channel = {record.src_base, record.num_codes};
  for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
    const int copy = s & ((1 << copies_log2<T>(stripes_log2)) - 1);
    if (!is_list && !loader.second && copy == (int)loader.copy) next[s] = channel;
    if (is_list && (shared || copy == (int)loader.list_copy)) list_mem[s][index] = word;
  }
  const int number = loader.round * T::slices + (loader.copy & (T::slices - 1));
  if (!is_list && !loader.second) record_mem[0][number] = (uint32_t)record.bias;
  if (!is_list && loader.second) record_mem[1][number] = word;
}

// The loader after that word. Nothing but registers decides what a word is.
inline void loader_advance(Loader &loader, uint64_t word) {
  const uint64_t words[2] = {word, word};
  const ChannelRecord record = decode_channel_record(words);
  const bool is_list = loader.list_left != 0;
  const bool is_second = !is_list && loader.second;
  const bool longer = is_second && loader.newest > loader.longest;
  const uint16_t list_left = (uint16_t)(loader.list_left - (is_list ? 1 : 0));
  loader.longest = longer ? loader.newest : loader.longest;
  loader.newest = record.num_codes;
  loader.list_left = is_second ? record.list_words : list_left;
  loader.list_index = is_second ? (uint16_t)0 : (uint16_t)(loader.list_index + 1);
  loader.list_copy = is_second ? loader.copy : loader.list_copy;
  loader.copy = (uint8_t)(loader.copy + (is_second ? 1 : 0));
  loader.channels_left = (uint8_t)(loader.channels_left - (is_second ? 1 : 0));
  loader.second = is_list ? loader.second : !loader.second;
}

}  // namespace rasna

#endif
