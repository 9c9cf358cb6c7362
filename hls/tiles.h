// TAPS and MOVE: the one loop in which all slices work, one iteration per cycle.
//
// In every iteration each slice takes one tap (or one MOVE entry), at most one finished word is
// requantized and written, and at most one word of the next round's lists arrives. Nothing waits
// inside: counters at the head of the pipeline decide, everything else follows in order.
#ifndef RASNA_HLS_TILES_H
#define RASNA_HLS_TILES_H

#include <stdint.h>

#include "config.h"
#include "drain.h"
#include "loader.h"
#include "map_memory.h"
#include "progress.h"
#include "slice.h"

namespace rasna {

template <class T>
inline void clear_slices(Slice<T> (&slices)[T::slices], Lanes<T> (&shadow)[T::slices],
                         SliceChannel (&next)[T::slices]) {
  for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
    next[s] = {0, 0, 0};
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

// The end of a tile in one slice: keep the accumulators, or hand them to the drain.
template <class T>
inline void end_tile(const Slice<T> &slice, bool keep, uint16_t acc_index, Lanes<T> &shadow,
                     int32_t (&kept)[T::acc_tiles][T::lanes]) {
  for (int p = 0; p < T::lanes; p++) {
#pragma HLS unroll
    if (keep) kept[acc_index & (T::acc_tiles - 1)][p] = slice.acc.v[p];
    shadow.v[p] = slice.acc.v[p];
  }
}

// `taps` is all zero for MOVE. Returns the iterations of the loop, for the simulator's profile:
// hardware does not use them, and so has no counter.
template <class T, class Stream>
uint32_t tiles_step(const TilesJob &job, const Taps &taps, Stream &words,
                typename Memory<T>::Map &map_mem, typename Memory<T>::List &list_mem,
                typename Memory<T>::Table &table_mem, typename Memory<T>::MoveOffset &move_mem,
                typename Memory<T>::Accumulator &acc_mem, typename Memory<T>::Record &record_mem,
                typename Memory<T>::Drained &drained_mem, StripeOrigin (&origins)[T::slices]) {
  static_assert(DRAIN_DELAY == 12, "the dependence pragma of drained_mem says 12");
  const Destination destination = destination_of(taps);
  const RequantizeLimits limits = requantize_limits(taps.ib, taps.clamp_lo, taps.clamp_hi);
  Slice<T> slices[T::slices];
  Lanes<T> shadow[T::slices];
  SliceChannel next[T::slices];
#pragma HLS array_partition variable=slices complete
#pragma HLS array_partition variable=shadow complete
#pragma HLS array_partition variable=next complete
  set_origins<T>(destination, origins);
  clear_slices<T>(slices, shadow, next);
  Progress at;
  Drain drain;
  Loader loader;
  progress_start(at, job);
  drain_begin(drain, 0, 0, at.tile);
  loader_idle(loader, job.is_move ? (uint16_t)0 : job.num_rounds);
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
    const StepControl step = step_control<T>(at, job);
    const bool busy = loader_busy(loader);
    Events e;
    events_of(e, at, drain, busy);
    const uint16_t longest = loader.longest;
    DrainedWord out = take_drained<T>(drained_mem, slot);
    out.enable = out.enable && ((drained >> (DRAIN_DELAY - 1)) & 1);
    put_drained<T>(drained_mem, slot,
                   drain_word<T>(drain, taps, destination, limits, shadow, record_mem));
    drained = (uint16_t)((drained << 1 | (drain.left != 0 ? 1 : 0)) & ((1 << DRAIN_DELAY) - 1));
    slot++;
    if (busy) {
      const uint64_t word = words.read();
      loader_take<T>(loader, word, job.stripes_log2, job.list_shared, next, list_mem, record_mem);
      loader_advance(loader, word);
    }
    for (int s = 0; s < T::slices; s++) {
#pragma HLS unroll
      const TableEntry entry = slice_step<T>(slices[s], step, list_mem[s], table_mem[s],
                                             map_mem[s], acc_mem[s]);
      if (e.tile_ends) {
        end_tile<T>(slices[s], job.acc_keep && !job.is_move, at.acc_index, shadow[s], acc_mem[s]);
      }
      const int entry_index = slices[0].position.index & (T::table_entries - 1);
      const uint16_t move_word = (uint16_t)(at.move.word + move_mem[entry_index]);
      const Place place = place_row(out.row, out.word, origins[s], destination);
      const bool move_writes = step.active && entry.last != 0;
      write_bank<T>(map_mem[s], job.is_move ? move_writes : out.enable && place.stored,
                    job.is_move ? move_word : place.word,
                    job.is_move ? slices[s].moved : out.data);
      if (e.round_starts) {
        const SliceChannel every = {0, 0, job.table_entries};
        slices[s].channel = job.is_move ? every : next[s];
      }
    }
    if (e.tile_ends && !job.acc_keep) {
      drain_begin(drain, at.round_words, at.round, at.tile);
    } else {
      drain_advance(drain, job.last_stripe, job.tile_rows);
    }
    progress_on(at, job, e, longest, (uint16_t)T::slices);
    if (e.round_starts) loader_begin(loader, job.channels);
  }
  return iterations;
}

}  // namespace rasna

#endif
