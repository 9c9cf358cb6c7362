// Checks a whole program before any of it is executed.
#ifndef RASNA_SIM_VALIDATE_H
#define RASNA_SIM_VALIDATE_H

#include <stdint.h>

#include "program.h"

namespace rasna {

// Most tiles (tile_rows * tile_words) of a TAPS instruction. Far above what fills a map; bounds the memory of a plan.
constexpr int64_t MAX_TILES = 65536;

// Check every instruction of the program for the target this file is compiled for: opcodes, fields, every address in
// the map, the accumulators, the table, the lists, the streams and the segments, the decoded offsets of every tap
// list included. Sets num_instructions. step_limit: most words or tap steps of one instruction. What it does not check is
// whether memory was written before it is read (the golden model does).
//
// Throws Failure with the instruction, the field, the value given and the values allowed.
void validate(Program &program, uint64_t step_limit);

}  // namespace rasna

#endif
