// A program as rasna_load gets it, and the memory that it runs on.
#ifndef RASNA_SIM_PROGRAM_H
#define RASNA_SIM_PROGRAM_H

#include <stdint.h>

#include <vector>

namespace rasna {

struct Program {
    std::vector<uint64_t> words;  // the PROGRAM segment: instructions from word 0 on, and the streams
    uint64_t input_words = 0;     // of one image
    uint64_t output_words = 0;
    uint64_t scratch_words = 0;
    int64_t num_instructions = 0;  // END included; set by validate()
};

// The segments of one image.
struct Segments {
    const uint64_t *input;
    uint64_t *output;
    uint64_t *scratch;
};

}  // namespace rasna

#endif
