// TAPS, MOVE, LOAD and FILL: the one loop in which all slices work, one iteration per cycle.
//
// In every iteration each slice takes one tap (or one MOVE entry), at most one finished word of every
// group is requantized and written (or one word of LOAD and FILL), and at most one word of the next round's
// lists arrives. Nothing waits inside: counters at the head of the pipeline decide, everything else
// follows in order.
#ifndef RASNA_HLS_TILES_H
#define RASNA_HLS_TILES_H

#include <stdint.h>

#include "config.h"
#include "drain.h"
#include "loader.h"
#include "map_memory.h"
#include "progress.h"
#include "slice.h"
#include "transfer.h"

namespace rasna {

template <class T>
inline void clear_slices(Slice<T> (&slices)[T::slices], Lanes<T> (&shadow)[T::slices],
                         SliceChannel (&next)[T::slices]) {
  for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
    next[s] = {0, 0};
    slices[s].channel = next[s];
    slices[s].position = POSITION_START;
    slices[s].moved = 0;
    slices[s].move_fresh = true;
    for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
      slices[s].acc.v[p] = shadow[s].v[p] = 0;
    }
  }
}

// The words that are written into the slices whose stripe stores their rows: for TAPS those that
// were drained, for LOAD and FILL the next one.
template <class T, class Address, class Port>
inline DrainedWords<T> outgoing_words(const TilesJob &job, const Progress &at,
                                      const DrainedWords<T> &drained, Reader<Address> &reader,
                                      Port &port) {
  DrainedWords<T> out = drained;
  uint64_t loaded = 0;
  if (at.active && job.from_memory) loaded = reader_take(reader, port);
  if (job.is_rows) {
    out.data[0] = loaded;
    out.enable[0] = at.active;
    out.last_word = at.tile.last_word || !job.from_memory;
    out.row = (int32_t)at.tile.row + (int32_t)job.destination.row;
    out.upper = (at.tile.word & 1) != 0;
    out.word = (uint16_t)(at.move.word + (job.destination.split ? at.tile.word >> 1 : 0));
  }
  for (int k = 0; k < T::drain_words; k++) {
#pragma HLS unroll
    out.data[k] =
        fill_lanes(out.data[k], out.last_word ? (int)job.last_lanes : WORD_BYTES, job.fill);
    if (job.destination.split) out.data[k] = split_word(out.data[k], out.word);
  }
  // MOVE: what lanes begin with
  if (job.is_move) out.data[0] = fill_lanes(0, 0, job.fill);
  return out;
}

// Which of the words that leave together a slice stores, and what it adds to the address of the
// first one: never more than one. MOVE, whose destination has no rows, stores none and adds 0.
template <class T>
inline Stored stored_word(const DrainedWords<T> &out, const TilesJob &job, StripeOrigin origin) {
  Stored stored = {false, 0, 0};
  for (int k = 0; k < T::drain_words; k++) {
#pragma HLS unroll
    const int32_t row = out.row + (int32_t)k * job.drain.part_rows;
    const uint16_t word = (uint16_t)((uint32_t)k * job.drain.part_words);
    const Place place = place_row(row, word, origin, job.destination);
    if (out.enable[k] && place.stored) stored = {true, place.word, (uint8_t)k};
  }
  return stored;
}

// `taps` is all zero but for TAPS. Returns the iterations of the loop, for the simulator's profile:
// hardware does not use them, and so has no counter.
template <class T, class Address, class Port, class Stream>
uint32_t tiles_step(const TilesJob &job, const Taps &taps, Reader<Address> reader, Port &port,
                Stream &words,
                typename Memory<T>::Map &map_mem, typename Memory<T>::List &list_mem,
                typename Memory<T>::Table &table_mem, typename Memory<T>::MoveOffset &move_mem,
                typename Memory<T>::Accumulator &acc_mem, typename Memory<T>::Record &record_mem,
                const typename Memory<T>::Curve &curve_mem, typename Memory<T>::Drained &drained_mem,
                StripeOrigin (&origins)[T::slices]) {
  static_assert(DRAIN_DELAY == 12, "the dependence pragma of drained_mem says 12");
  Slice<T> slices[T::slices];
  Lanes<T> shadow[T::slices];
  SliceChannel next[T::slices];
#pragma HLS array_partition variable=slices complete
#pragma HLS array_partition variable=shadow complete
#pragma HLS array_partition variable=next complete
  set_origins<T>(job.destination, origins);
  reader_begin(reader, job.from_memory, port);
  clear_slices<T>(slices, shadow, next);
  Progress at;
  Drain drain;
  Loader loader;
  progress_start(at, job);
  drain_begin(drain, 0, 0, 0, at.tile);
  loader_idle(loader, job.is_taps ? job.num_rounds : (uint16_t)0);
  loader_begin(loader, job.channels);
  uint16_t drained = 0;  // bit k: k + 1 iterations ago a word was drained
  uint8_t slot = 0;
  uint32_t iterations = 0;
  bool running = true;
  while (running) {
#pragma HLS pipeline II=1
    // No instruction reads a map byte that it has written before, and every tile has its own entry
    // of the accumulator memory: no iteration waits for the write of an earlier one.
#pragma HLS dependence variable=map_mem inter false
#pragma HLS dependence variable=acc_mem inter false
    // The last word of a round is taken, then the round starts, then its first tile ends, then the
    // drain reads a record: at least three iterations after it was written. Drained words are
    // written to the map DRAIN_DELAY iterations after they were put into their slot.
#pragma HLS dependence variable=record_mem inter true distance=3
#pragma HLS dependence variable=drained_mem inter true distance=12
    iterations++;
    running = at.active || at.rounds_left != 0 || drain.left != 0 || drained != 0;
    const bool busy = loader_busy(loader);
    Events e;
    events_of(e, at, drain, busy);
    const StepControl step = step_control<T>(at, job, e);
    const uint16_t longest = loader.longest;
    // A round starts when nothing is left to be taken: with what was there before this cycle.
    // Without lists `next` stays 0: a source from 0 on, and no code.
    SliceChannel channels[T::slices];
#pragma HLS array_partition variable=channels complete
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      channels[s] = e.round_starts ? next[s] : slices[s].channel;
    }
    if (busy) {
      const uint64_t word = words.read();
      loader_take<T>(loader, word, job.stripes_log2, job.list_shared, next, list_mem, record_mem);
      loader_advance(loader, word);
    }
    const bool is_ready = (drained >> (DRAIN_DELAY - 1)) & 1;
    const DrainedWords<T> ready = take_drained<T>(drained_mem, slot, is_ready);
    const DrainedWords<T> out = outgoing_words<T>(job, at, ready, reader, port);
    put_drained<T>(drained_mem, slot,
                   drain_words<T>(drain, job.drain, taps, job.destination, shadow, record_mem,
                                  curve_mem, acc_mem));
    const int drains = drain.left != 0 && !job.acc_keep ? 1 : 0;
    drained = (uint16_t)((drained << 1 | drains) & ((1 << DRAIN_DELAY) - 1));
    slot++;
    const bool pair = job.pairs && !(job.lone_word && at.tile.last_word) &&
                      !(job.lone_row && at.tile.last_row);
    BankWrite write = {false, {false, false}, {0, 0}};
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      const Tap tap = next_tap<T>(slices[s], step, list_mem[s], table_mem[s]);
      uint64_t vector = unspecified();
      if (!job.is_rows) {
        vector = read_vector<T>(map_mem[s], tap.address);
        Lanes<T> sums;
        accumulate_vector<T>(slices[s], step, vector, tap.weight, tap.entry, sums);
        for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
          if (e.tile_ends) shadow[s].v[p] = sums.v[p];
          slices[s].acc.v[p] = e.tile_starts ? 0 : sums.v[p];
        }
      }
      if (s == 0) {  // the same for all slices
        const int16_t move_offset = move_mem[tap.index & (T::table_entries - 1)];
        const uint16_t move_word = (uint16_t)(at.move.word + move_offset);
        write = bank_write(job.destination.split, pair, job.is_move ? move_word : out.word,
                           out.upper, job.destination.phase_step);
      }
      const Stored stored = stored_word<T>(out, job, origins[s]);
      slices[s].moved = next_word<T::drain_words>(slices[s].moved, slices[s].move_fresh, vector,
                                                  tap.entry.lane_mask, job.is_move, out.data,
                                                  stored.which);
      if (step.active) slices[s].move_fresh = tap.entry.last != 0;
      const bool move_writes = step.active && tap.entry.last != 0;
      write_banks<T>(map_mem[s], job.is_move ? move_writes : stored.enable, write, stored.word,
                     slices[s].moved);
      slices[s].channel = channels[s];
    }
    if (e.tile_ends) {
      drain_begin(drain, at.round_words, at.round, at.acc_index, at.tile);
    } else {
      drain_advance(drain, job.drain, job.tile_rows);
    }
    progress_on(at, job, e, longest);
    if (e.round_starts) loader_begin(loader, job.channels);
  }
  return iterations;
}

}  // namespace rasna

#endif
