// Progress: the counters of TAPS and MOVE, which decide what happens in a cycle.
#ifndef RASNA_HLS_PROGRESS_H
#define RASNA_HLS_PROGRESS_H

#include <stdint.h>

#include "config.h"
#include "drain.h"
#include "loader.h"
#include "map_memory.h"
#include "slice.h"
#include "walk.h"

namespace rasna {

// An instruction as the loop sees it. MOVE is a TAPS whose rounds are channels, whose lists are the
// offset table, and which writes assembled words instead of requantized ones. LOAD and FILL are a
// MOVE with one step per word, whose words come from memory or from nowhere.
struct TilesJob {
  bool is_taps, is_move, is_rows;  // one of TAPS; MOVE; LOAD and FILL
  bool from_memory;                // LOAD
  bool is_max, acc_init, acc_keep, list_shared, sparse;
  uint8_t stripes_log2, last_slot;
  DrainSteps drain;
  uint16_t num_rounds;
  RoundChannels channels;  // TAPS: with a record in the stream
  uint16_t final_words, full_words;  // iterations to drain a tile of the last round, of all others
  uint16_t tile_rows;
  TileLast last;
  uint16_t table_entries;
  int16_t group_step;
  uint16_t src_base;
  WalkSteps src_steps;
  uint16_t move_base;
  WalkSteps move_steps;
  uint16_t acc_base;
  uint8_t fill, last_lanes;
  Destination destination;
  bool pairs;                 // FILL: two words per step, `phase_step` apart
  bool lone_word, lone_row;   // but the last word of a row, of the last row, has no second one
};

template <class T>
inline TilesJob taps_job(const Taps &f) {
  const int copies = 1 << copies_log2<T>(f.stripes_log2);
  TilesJob job;
  job.is_taps = true;
  job.is_move = job.is_rows = job.from_memory = false;
  job.is_max = f.func == FUNC_MAX;
  job.acc_init = f.acc_init != 0;
  job.acc_keep = f.acc_keep != 0;
  job.list_shared = f.list_shared != 0;
  job.sparse = f.encoding == ENCODING_SPARSE;
  job.stripes_log2 = f.stripes_log2;
  job.drain = drain_steps<T>(f);
  job.last_slot = (uint8_t)((job.sparse ? SPARSE_CODES_PER_WORD : DENSE_CODES_PER_WORD) - 1);
  job.num_rounds = (uint16_t)(((uint32_t)f.num_channels + (uint32_t)copies - 1) >> copies_log2<T>(f.stripes_log2));
  job.channels = round_channels(f.num_channels, copies);
  job.final_words = (uint16_t)((int)job.channels.final_round << (f.stripes_log2 & 7) >> f.drain_log2);
  job.full_words = (uint16_t)(T::slices >> f.drain_log2);
  job.tile_rows = f.tile_rows;
  job.last = tile_last(f.tile_rows, f.tile_words);
  job.table_entries = f.table_entries;
  job.group_step = f.group_step;
  job.src_base = 0;  // the record has it
  job.src_steps = {0, f.src_row_step, f.src_word_step};
  job.move_base = 0;
  job.move_steps = {0, 0, 0};
  job.acc_base = f.acc_base;
  job.fill = f.fill;
  job.last_lanes = f.last_lanes;
  job.destination = destination_of(f);
  job.pairs = job.lone_word = job.lone_row = false;
  return job;
}

// A job without lists and accumulators: channels x rows x words that are written one after another.
inline TilesJob plain_job(uint16_t num_channels, uint16_t num_rows, uint16_t num_words) {
  TilesJob job;
  job.is_taps = job.is_move = job.is_rows = job.from_memory = false;
  job.is_max = job.acc_init = job.acc_keep = job.list_shared = job.sparse = false;
  job.stripes_log2 = 0;
  job.drain = {0, 0, 0, 0, 0};
  job.last_slot = DENSE_CODES_PER_WORD - 1;
  job.num_rounds = num_channels;
  job.channels.final_round = job.channels.full_round = 0;
  job.final_words = job.full_words = 0;
  job.tile_rows = num_rows;
  job.last = tile_last(num_rows, num_words);
  job.table_entries = 1;
  job.group_step = 0;
  job.src_base = 0;
  job.src_steps = {0, 0, 0};
  job.acc_base = 0;
  job.pairs = job.lone_word = job.lone_row = false;
  return job;
}

inline TilesJob move_job(const Move &f) {
  TilesJob job = plain_job(f.num_channels, f.num_rows, f.num_words);
  job.is_move = true;
  job.table_entries = f.table_entries;
  job.src_base = f.src_base;
  job.src_steps = {f.src_channel_step, f.src_row_step, f.src_word_step};
  job.move_base = f.out_base;
  job.move_steps = {f.out_channel_step, f.out_row_step, f.out_word_step};
  job.fill = f.fill;
  job.last_lanes = WORD_BYTES;
  job.destination = NO_DESTINATION;
  return job;
}

inline TilesJob load_job(const Load &f) {
  TilesJob job = plain_job(f.num_channels, f.num_rows, f.num_words);
  job.is_rows = job.from_memory = true;
  job.destination = destination_of(f);
  const uint32_t first_row_words = (uint32_t)(int32_t)f.out_row * (uint32_t)f.out_row_step;
  job.move_base = (uint16_t)(f.out_base + first_row_words);
  // the words of a split row are counted by the tile
  job.move_steps = {f.out_channel_step, f.out_row_step, (uint16_t)(job.destination.split ? 0 : 1)};
  job.fill = f.fill;
  job.last_lanes = f.last_lanes;
  return job;
}

inline uint16_t half_up(uint16_t count) { return (uint16_t)((count >> 1) + (count & 1)); }

// One stripe that all slices hold, one row per block; no lane comes from anywhere. Two words at a
// time: neighbours, or where blocks are single words, those of two blocks an odd step apart.
inline TilesJob fill_job(const Fill &f) {
  const bool of_words = f.num_words != 1, of_blocks = !of_words && (f.block_step & 1) != 0;
  const uint16_t num_blocks = of_blocks ? half_up(f.num_blocks) : f.num_blocks;
  TilesJob job = plain_job(1, num_blocks, half_up(f.num_words));
  job.is_rows = true;
  job.pairs = of_words || of_blocks;
  job.lone_word = of_words && (f.num_words & 1) != 0;
  job.lone_row = of_blocks && (f.num_blocks & 1) != 0;
  job.destination = NO_DESTINATION;
  job.destination.rows = job.destination.local_rows = num_blocks;
  job.destination.phase_step = of_words ? (uint16_t)1 : f.block_step;
  job.move_base = f.out_base;
  const uint16_t block_step = of_blocks ? (uint16_t)(f.block_step << 1) : f.block_step;
  job.move_steps = {0, block_step, 2};
  job.fill = f.fill;
  job.last_lanes = 0;
  return job;
}

// Which step of which tile. All fields are registers at the head of the pipeline. Flags that
// decide are compared one step ahead, so that the decision of a cycle is a few gates deep.
struct Progress {
  bool active;           // a tile is being worked on
  uint16_t rounds_left;  // rounds that have not started
  uint8_t round;         // number of the current round modulo RECORD_ROUNDS
  uint16_t round_words;  // words to drain for each of its tiles
  uint16_t round_steps;  // steps of each of its tiles
  uint16_t steps_left;   // of this tile; stays 0 while the tile waits for the drain
  bool steps_done;       // a tile is active, and this step is its last one or behind it
  uint16_t step;
  uint16_t list_index;
  uint8_t slot;
  Tile tile;
  Walk src, move;
  uint16_t acc_index;
};

inline void progress_start(Progress &at, const TilesJob &job) {
  at.active = at.steps_done = false;
  at.rounds_left = job.num_rounds;
  at.round = RECORD_ROUNDS - 1;  // so that the first one is number 0
  at.round_words = at.round_steps = at.steps_left = 0;
  at.step = 0;
  at.list_index = 0;
  at.slot = 0;
  // before the first round as behind any other: starting a round goes on to its first tile
  tile_behind(at.tile, job.last);
  walk_from(at.src, (uint16_t)(job.src_base - job.src_steps.channel));
  walk_from(at.move, (uint16_t)(job.move_base - job.move_steps.channel));
  at.acc_index = job.acc_base;
}

// What happens at the end of this cycle.
struct Events {
  bool tile_ends, round_ends, round_starts;
  bool tile_starts, tile_moves;  // any; one that is not the first of a round, or that is
};

inline void events_of(Events &e, const Progress &at, const Drain &drain, bool busy) {
  const bool may_start = at.rounds_left != 0 && !busy;
  const bool last_tile = at.tile.last_word && at.tile.last_row;
  // a tile ends when its steps are done and the tile before it has left the shadow registers
  e.tile_ends = at.steps_done && drain.nearly_done;
  e.round_ends = e.tile_ends && last_tile;
  e.round_starts = (e.round_ends || !at.active) && may_start;
  e.tile_starts = e.round_starts || e.tile_ends;
  e.tile_moves = e.round_starts || (e.tile_ends && !last_tile);
}

inline void next_step(Progress &at, const TilesJob &job, const Events &e, uint16_t new_steps) {
  const bool slot_ends = at.slot == job.last_slot;
  const bool short_round = at.round_steps <= 1, short_new_round = new_steps <= 1;
  const bool last_tile = at.tile.last_word && at.tile.last_row;
  const bool next_done = short_round && !last_tile, nearly_done = at.active && at.steps_left <= 2;
  const uint16_t steps_left = (uint16_t)(at.steps_left - (at.steps_left != 0 ? 1 : 0));
  const uint16_t list_index = (uint16_t)(at.list_index + (slot_ends ? 1 : 0));
  const uint8_t slot = slot_ends ? (uint8_t)0 : (uint8_t)(at.slot + 1);
  at.step = e.tile_starts ? (uint16_t)0 : (uint16_t)(at.step + 1);
  at.slot = e.tile_starts ? (uint8_t)0 : slot;
  at.list_index = e.tile_starts ? (uint16_t)0 : list_index;
  at.steps_done = e.round_starts ? short_new_round : e.tile_ends ? next_done : nearly_done;
  at.steps_left = e.round_starts ? new_steps : e.tile_ends ? at.round_steps : steps_left;
}

// Move the counters on. `longest` is the most codes of a list of the round that may start.
inline void progress_on(Progress &at, const TilesJob &job, const Events &e, uint16_t longest) {
  const uint16_t new_steps = job.is_taps ? longest : job.table_entries;
  const uint16_t new_words = at.rounds_left == 1 ? job.final_words : job.full_words;
  next_step(at, job, e, new_steps);
  Walk src = at.src, move = at.move;
  Tile tile = at.tile;
  walk_on(src, job.src_steps, at.tile.last_word, at.tile.last_row);
  walk_on(move, job.move_steps, at.tile.last_word, at.tile.last_row);
  tile_on(tile, job.last);
  if (e.tile_moves) {
    at.src = src;
    at.move = move;
    at.tile = tile;
  }
  if (e.round_starts) {
    at.rounds_left--;
    at.round = next_round(at.round);
    at.round_words = new_words;
    at.round_steps = new_steps;
  }
  at.acc_index = (uint16_t)(at.acc_index + (e.tile_ends ? 1 : 0));
  at.active = e.round_starts || (at.active && !e.round_ends);
}

template <class T>
inline StepControl step_control(const Progress &at, const TilesJob &job, const Events &e) {
  const int half = job.list_shared ? 0 : at.round & 1;
  StepControl c;
  c.active = at.active;
  c.starts = e.tile_starts;
  c.is_move = job.is_move;
  c.is_max = job.is_max;
  c.sparse = job.sparse;
  c.step = at.step;
  c.list_index = (uint16_t)(half * T::list_words + (at.list_index & (T::list_words - 1)));
  c.slot = at.slot;
  c.offset = at.src.word;
  c.table_entries = job.table_entries;
  c.group_step = job.group_step;
  return c;
}

}  // namespace rasna

#endif
