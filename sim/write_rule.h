// The write_word rule of docs/machine.md, row by row, for any row number.
#ifndef RASNA_SIM_WRITE_RULE_H
#define RASNA_SIM_WRITE_RULE_H

#include <stdint.h>

#include "../hls/map_memory.h"

namespace rasna {

// Local row of `stripe` that holds destination row `row` (out_row included), or -1.
inline int local_row(const Destination &to, int stripe, int row) {
    int local = row - stripe * static_cast<int>(to.rows) + to.halo_top;
    if (to.circular) {
        local %= static_cast<int>(to.height);
        if (local < 0) local += to.height;
    }
    return local >= 0 && local < to.local_rows ? local : -1;
}

}  // namespace rasna

#endif
