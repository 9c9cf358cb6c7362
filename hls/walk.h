// Addresses of a nest of three loops (channel, row, word) without a multiplier.
#ifndef RASNA_HLS_WALK_H
#define RASNA_HLS_WALK_H

#include <stdint.h>

namespace rasna {

struct WalkSteps {
  uint16_t channel, row, word;
};

// word = base + c*steps.channel + y*steps.row + x*steps.word, modulo 2^16.
struct Walk {
  uint16_t channel, row, word;  // address at the start of the channel, of the row, and now
};

inline void walk_from(Walk &at, uint16_t base) { at.channel = at.row = at.word = base; }

inline void walk_on(Walk &at, const WalkSteps &steps, bool last_word, bool last_row) {
  const uint16_t channel = (uint16_t)(at.channel + steps.channel);
  const uint16_t row = (uint16_t)(at.row + steps.row);
  const uint16_t word = (uint16_t)(at.word + steps.word);
  at.channel = last_word && last_row ? channel : at.channel;
  at.row = !last_word ? at.row : last_row ? channel : row;
  at.word = !last_word ? word : last_row ? channel : row;
}

// The counters of the same nest, without the channel. The flags are registers of their own: they
// are compared a step ahead, off the path that decides what happens next.
struct Tile {
  uint16_t row, word;
  bool last_row, last_word;
};

// The last row and word, that is their number minus one.
struct TileLast {
  uint16_t row, word;
};

inline TileLast tile_last(uint16_t num_rows, uint16_t num_words) {
  const TileLast last = {(uint16_t)(num_rows - 1), (uint16_t)(num_words - 1)};
  return last;
}

inline void tile_first(Tile &at, const TileLast &last) {
  at.row = at.word = 0;
  at.last_row = last.row == 0;
  at.last_word = last.word == 0;
}

// As if the last tile had just been done.
inline void tile_behind(Tile &at, const TileLast &last) {
  at.row = last.row;
  at.word = last.word;
  at.last_row = at.last_word = true;
}

// On to the next one; behind the last tile comes the first.
inline void tile_on(Tile &at, const TileLast &last) {
  const uint16_t next_word = (uint16_t)(at.word + 1), next_row = (uint16_t)(at.row + 1);
  const bool moves = at.last_word, wraps = at.last_word && at.last_row;
  const bool word_ends = next_word == last.word, row_ends = next_row == last.row;
  at.last_row = wraps ? last.row == 0 : moves ? row_ends : at.last_row;
  at.row = wraps ? (uint16_t)0 : moves ? next_row : at.row;
  at.last_word = moves ? last.word == 0 : word_ends;
  at.word = moves ? (uint16_t)0 : next_word;
}

}  // namespace rasna

#endif
