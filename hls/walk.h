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

inline Walk walk_from(uint16_t base) {
  const Walk walk = {base, base, base};
  return walk;
}

inline Walk walk_on(Walk at, WalkSteps steps, bool last_word, bool last_row) {
  const uint16_t channel = (uint16_t)(at.channel + steps.channel);
  const uint16_t row = (uint16_t)(at.row + steps.row);
  const uint16_t word = (uint16_t)(at.word + steps.word);
  Walk next;
  next.channel = last_word && last_row ? channel : at.channel;
  next.row = !last_word ? at.row : last_row ? channel : row;
  next.word = !last_word ? word : last_row ? channel : row;
  return next;
}

// The counters of the same nest, without the channel.
struct Tile {
  uint16_t row, word;
};

inline Tile tile_after(Tile at, bool last_word, bool last_row) {
  Tile next;
  next.word = last_word ? (uint16_t)0 : (uint16_t)(at.word + 1);
  next.row = !last_word ? at.row : last_row ? (uint16_t)0 : (uint16_t)(at.row + 1);
  return next;
}

}  // namespace rasna

#endif
