// Progress: the counters of TAPS and MOVE, which decide what happens in a cycle.
#ifndef RASNA_HLS_PROGRESS_H
#define RASNA_HLS_PROGRESS_H

#include <stdint.h>

#include "config.h"
#include "drain.h"
#include "loader.h"
#include "slice.h"
#include "walk.h"

namespace rasna {

// An instruction as the loop sees it: MOVE is a TAPS whose rounds are channels, whose lists are the
// offset table, and which writes assembled words instead of requantized ones.
struct TilesJob {
  bool is_move, is_max, acc_init, acc_keep, list_shared, sparse;
  uint8_t stripes_log2;
  uint16_t num_rounds, num_channels;  // num_channels: with a record in the stream
  uint16_t tile_rows, tile_words;
  uint16_t table_entries;
  int16_t group_step;
  uint16_t src_base;
  WalkSteps src_steps;
  uint16_t move_base;
  WalkSteps move_steps;
  uint16_t acc_base;
  uint8_t fill;
};

template <class T>
inline TilesJob taps_job(const Taps &f) {
  const int copies_log2 = T::slices_log2 - (int)f.stripes_log2;
  const int copies = 1 << (copies_log2 & 7);
  TilesJob job;
  job.is_move = false;
  job.is_max = f.func == FUNC_MAX;
  job.acc_init = f.acc_init != 0;
  job.acc_keep = f.acc_keep != 0;
  job.list_shared = f.list_shared != 0;
  job.sparse = f.encoding == ENCODING_SPARSE;
  job.stripes_log2 = f.stripes_log2;
  job.num_rounds = (uint16_t)(((uint32_t)f.num_channels + (uint32_t)copies - 1) >> (copies_log2 & 7));
  job.num_channels = f.num_channels;
  job.tile_rows = f.tile_rows;
  job.tile_words = f.tile_words;
  job.table_entries = f.table_entries;
  job.group_step = f.group_step;
  job.src_base = 0;  // the record has it
  job.src_steps = {0, f.src_row_step, f.src_word_step};
  job.move_base = 0;
  job.move_steps = {0, 0, 0};
  job.acc_base = f.acc_base;
  job.fill = f.fill;
  return job;
}

inline TilesJob move_job(const Move &f) {
  TilesJob job;
  job.is_move = true;
  job.is_max = job.acc_init = job.list_shared = job.sparse = false;
  job.acc_keep = true;  // nothing to drain
  job.stripes_log2 = 0;
  job.num_rounds = f.num_channels;
  job.num_channels = 0;
  job.tile_rows = f.num_rows;
  job.tile_words = f.num_words;
  job.table_entries = f.table_entries;
  job.group_step = 0;
  job.src_base = f.src_base;
  job.src_steps = {f.src_channel_step, f.src_row_step, f.src_word_step};
  job.move_base = f.out_base;
  job.move_steps = {f.out_channel_step, f.out_row_step, f.out_word_step};
  job.acc_base = 0;
  job.fill = f.fill;
  return job;
}

// Which step of which tile. All fields are registers at the head of the pipeline.
struct Progress {
  bool active;           // a tile is being worked on
  uint16_t rounds_left;  // rounds that have not started
  uint8_t round;         // number of the current round modulo RECORD_ROUNDS
  uint16_t round_words;  // words to drain for each of its tiles
  uint16_t round_steps;  // steps of each of its tiles
  uint16_t steps_left;   // of this tile, 1 in its last step and behind
  uint32_t step;
  uint16_t list_index;
  uint8_t slot;
  Tile tile;
  Walk src, move;
  uint16_t acc_index;
};

inline Progress progress_start(const TilesJob &job) {
  Progress at;
  at.active = false;
  at.rounds_left = job.num_rounds;
  at.round = RECORD_ROUNDS - 1;  // so that the first one is number 0
  at.round_words = at.round_steps = at.steps_left = 0;
  at.step = 0;
  at.list_index = 0;
  at.slot = 0;
  at.tile = {0, 0};
  // one channel back: starting a round goes one on
  at.src = walk_from((uint16_t)(job.src_base - job.src_steps.channel));
  at.move = walk_from((uint16_t)(job.move_base - job.move_steps.channel));
  at.acc_index = job.acc_base;
  return at;
}

// What happens at the end of this cycle.
struct Events {
  bool last_word, last_row;
  bool tile_ends, round_ends, round_starts;
};

inline Events events_of(const Progress &at, const TilesJob &job, const Drain &drain,
                        bool loader_busy) {
  Events e;
  e.last_word = at.tile.word == job.tile_words - 1;
  e.last_row = at.tile.row == job.tile_rows - 1;
  // a tile ends when its steps are done and the tile before it has left the shadow registers
  e.tile_ends = at.active && at.steps_left <= 1 && drain.left <= 1;
  e.round_ends = e.tile_ends && e.last_word && e.last_row;
  e.round_starts = (e.round_ends || !at.active) && at.rounds_left != 0 && !loader_busy;
  return e;
}

inline void next_step(Progress &at, const TilesJob &job, bool tile_starts) {
  const bool slot_ends =
      (int)at.slot == (job.sparse ? SPARSE_CODES_PER_WORD : DENSE_CODES_PER_WORD) - 1;
  at.step = tile_starts ? 0u : at.step + 1;
  at.slot = tile_starts || slot_ends ? (uint8_t)0 : (uint8_t)(at.slot + 1);
  at.list_index = tile_starts ? (uint16_t)0 : (uint16_t)(at.list_index + (slot_ends ? 1 : 0));
  const uint16_t steps_left = at.steps_left > 1 ? (uint16_t)(at.steps_left - 1) : at.steps_left;
  at.steps_left = tile_starts ? at.round_steps : steps_left;
}

// Move the counters on. The loader's `longest` and channel count belong to the round that starts.
inline void progress_on(Progress &at, const TilesJob &job, const Events &e, const Loader &loader) {
  if (e.round_starts) {
    const int channels = (int)loader.last_copy + 1;
    at.rounds_left--;
    at.round = next_round(at.round);
    at.round_words = (uint16_t)(channels << job.stripes_log2);
    at.round_steps = job.is_move ? job.table_entries : loader.longest;
    at.tile = {0, 0};
    at.src = walk_on(at.src, job.src_steps, true, true);
    at.move = walk_on(at.move, job.move_steps, true, true);
  } else if (e.tile_ends && !e.round_ends) {
    at.tile = tile_after(at.tile, e.last_word, e.last_row);
    at.src = walk_on(at.src, job.src_steps, e.last_word, e.last_row);
    at.move = walk_on(at.move, job.move_steps, e.last_word, e.last_row);
  }
  at.acc_index = (uint16_t)(at.acc_index + (e.tile_ends ? 1 : 0));
  next_step(at, job, e.round_starts || e.tile_ends);
  at.active = e.round_starts || (at.active && !e.round_ends);
}

template <class T>
inline StepControl step_control(const Progress &at, const TilesJob &job) {
  const int half = job.list_shared ? 0 : at.round & 1;
  StepControl c;
  c.active = at.active;
  c.first = at.step == 0;
  c.is_move = job.is_move;
  c.is_max = job.is_max;
  c.acc_init = job.acc_init;
  c.sparse = job.sparse;
  c.step = at.step;
  c.list_index = (uint16_t)(half * T::list_words + (at.list_index & (T::list_words - 1)));
  c.slot = at.slot;
  c.offset = at.src.word;
  c.acc_index = at.acc_index;
  c.table_entries = job.table_entries;
  c.group_step = job.group_step;
  c.fill = job.fill;
  return c;
}

}  // namespace rasna

#endif
