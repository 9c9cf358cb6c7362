// STORE and TABLE, and what LOAD asks memory for: one word per cycle between memory and the slices.
//
// Port has the calls of hls::burst_maxi<uint64_t>: read_request, read, write_request, write,
// write_response. Stream has read().
#ifndef RASNA_HLS_TRANSFER_H
#define RASNA_HLS_TRANSFER_H

#include <stdint.h>

#include "config.h"
#include "map_memory.h"
#include "walk.h"

namespace rasna {

// Requests that are sent before the words of the first one are taken: memory answers late. The
// memory interface must queue as many, or a request would wait for a read behind it.
constexpr int RUNS_AHEAD = 8;

// A transfer of channels x rows x words as contiguous runs, as long as the steps allow: all of
// it, one channel, or one row. An address counts words of 8 bytes: 32 bits in hardware.
template <class Address>
struct Runs {
  Address address, channel_address;
  uint32_t channel_step, row_step;
  uint32_t num_words;  // of a run
  uint32_t num_runs;
  uint16_t last_row, row;  // of the runs of a channel, and which of them is next
};

template <class Fields, class Address>
inline Runs<Address> runs_of(const Fields &f, Address segment_base) {
  const uint32_t row_words = f.num_words;
  const uint32_t channel_words = (uint32_t)f.num_rows * row_words;
  const bool rows_join = f.dram_row_step == f.num_words || f.num_rows == 1;
  const bool all_join =
      rows_join && (f.dram_channel_step == channel_words || f.num_channels == 1);
  Runs<Address> runs;
  runs.address = segment_base + f.dram_addr;
  runs.channel_address = runs.address;
  runs.channel_step = f.dram_channel_step;
  runs.row_step = f.dram_row_step;
  runs.num_words = all_join    ? (uint32_t)f.num_channels * channel_words
                   : rows_join ? channel_words
                               : row_words;
  runs.num_runs = all_join    ? 1u
                  : rows_join ? (uint32_t)f.num_channels
                              : (uint32_t)f.num_channels * (uint32_t)f.num_rows;
  runs.last_row = rows_join ? (uint16_t)0 : (uint16_t)(f.num_rows - 1);
  runs.row = 0;
  return runs;
}

template <class Address>
inline void next_run(Runs<Address> &runs) {
  const bool last = runs.row == runs.last_row;
  const Address channel_address = runs.channel_address + runs.channel_step;
  runs.address = last ? channel_address : runs.address + runs.row_step;
  runs.channel_address = last ? channel_address : runs.channel_address;
  runs.row = last ? (uint16_t)0 : (uint16_t)(runs.row + 1);
  runs.num_runs--;
}

// Words of all rows: fits, because they lie in one memory.
inline uint32_t total_words(uint16_t num_channels, uint16_t num_rows, uint16_t num_words) {
  return (uint32_t)num_channels * (uint32_t)num_rows * (uint32_t)num_words;
}

// The words of LOAD. Requests are sent up to RUNS_AHEAD runs before their words are read.
template <class Address>
struct Reader {
  Runs<Address> runs;
  uint32_t run_left;  // words of this run
  bool asks;          // with the next word, for another run: known one word ahead
};

// `any` is whether there is something to read.
template <class Address, class Port>
void reader_begin(Reader<Address> &reader, bool any, Port &port) {
  const uint32_t all_runs = any ? reader.runs.num_runs : 0u;
  const uint32_t first_runs = all_runs < (uint32_t)RUNS_AHEAD ? all_runs : (uint32_t)RUNS_AHEAD;
  for (uint32_t i = 0; i < first_runs; i++) {
#pragma HLS pipeline II=1
    port.read_request(reader.runs.address, reader.runs.num_words);
    next_run(reader.runs);
  }
  reader.run_left = reader.runs.num_words;
  reader.asks = reader.run_left == 1 && reader.runs.num_runs != 0;
}

template <class Address, class Port>
inline uint64_t reader_take(Reader<Address> &reader, Port &port) {
  const uint64_t word = port.read();
  const bool run_ends = reader.run_left == 1;
  const bool next_ends = run_ends ? reader.runs.num_words == 1 : reader.run_left == 2;
  const bool more = reader.asks ? reader.runs.num_runs != 1 : reader.runs.num_runs != 0;
  if (reader.asks) {
    port.read_request(reader.runs.address, reader.runs.num_words);
    next_run(reader.runs);
  }
  reader.run_left = run_ends ? reader.runs.num_words : reader.run_left - 1;
  reader.asks = next_ends && more;
  return word;
}

// Where STORE reads: stripe, row within it, and the word address at the start of channel and row.
struct StoreRow {
  uint16_t stripe, row;
  uint16_t channel_word, row_word;
};

inline StoreRow next_store_row(StoreRow at, const Store &f, bool last_row, uint16_t halo_words) {
  const bool stripe_ends = at.row + 1 == (int)f.src_rows;
  const uint16_t channel = (uint16_t)(at.channel_word + f.src_channel_step);
  StoreRow next;
  next.stripe = last_row ? (uint16_t)0 : (uint16_t)(at.stripe + (stripe_ends ? 1 : 0));
  next.row = last_row || stripe_ends ? (uint16_t)0 : (uint16_t)(at.row + 1);
  next.channel_word = last_row ? channel : at.channel_word;
  next.row_word = last_row      ? (uint16_t)(channel + halo_words)
                  : stripe_ends ? (uint16_t)(at.channel_word + halo_words)
                                : (uint16_t)(at.row_word + f.src_row_step);
  return next;
}

// Reads one word per cycle from all slices, keeps the owner's. At most RUNS_AHEAD bursts wait for
// their response; all have come when the step ends, so that a LOAD may follow.
template <class T, class Address, class Port>
void store_step(const Store &f, Runs<Address> runs, Port &port, const typename Memory<T>::Map &map_mem) {
  constexpr int mask = T::map_words / 2 - 1;
  const uint16_t halo_words = (uint16_t)((uint32_t)f.src_halo_top * (uint32_t)f.src_row_step);
  const uint32_t run_words = runs.num_words;
  StoreRow at = {0, 0, f.src_base, (uint16_t)(f.src_base + halo_words)};
  const TileLast last = tile_last(f.num_rows, f.num_words);
  Tile tile;
  tile_first(tile, last);
  uint32_t words_left = total_words(f.num_channels, f.num_rows, f.num_words);
  uint32_t run_left = run_words;
  int waiting = 0;
  bool run_starts = true;
  while (words_left != 0) {
#pragma HLS pipeline II=1
    if (run_starts && waiting == RUNS_AHEAD) port.write_response();
    if (run_starts) {
      port.write_request(runs.address, run_words);
      next_run(runs);
      waiting = waiting == RUNS_AHEAD ? waiting : waiting + 1;
    }
    const uint16_t word = (uint16_t)(at.row_word + tile.word);
    uint64_t even[T::slices], odd[T::slices];
#pragma HLS array_partition variable=even complete
#pragma HLS array_partition variable=odd complete
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      even[s] = read_bank<T>(map_mem[s], 0, (word >> 1) & mask);
      odd[s] = read_bank<T>(map_mem[s], 1, (word >> 1) & mask);
    }
    const int slice = first_copy<T>(at.stripe, f.stripes_log2);
    const uint64_t of_even = select_value<T::slices>(even, slice);
    const uint64_t of_odd = select_value<T::slices>(odd, slice);
    port.write(word & 1 ? of_odd : of_even);
    run_starts = run_left == 1;
    run_left = run_left == 1 ? run_words : run_left - 1;
    words_left--;
    if (tile.last_word) at = next_store_row(at, f, tile.last_row, halo_words);
    tile_on(tile, last);
  }
  for (; waiting != 0; waiting--) {
#pragma HLS pipeline II=1
    port.write_response();
  }
}

// The offset table: the same entries for all slices, and MOVE's destination offsets once.
template <class T, class Stream>
void table_step(const Table &f, Stream &words, typename Memory<T>::Table &table_mem,
                typename Memory<T>::MoveOffset &move_mem) {
  for (uint16_t i = 0; i < f.num_entries; i++) {
#pragma HLS pipeline II=1
    const uint64_t word = words.read();
    const int index = i & (T::table_entries - 1);
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      table_mem[s][index] = (uint32_t)word;
    }
    move_mem[index] = decode_table_entry(&word).out_offset;
  }
}

}  // namespace rasna

#endif
