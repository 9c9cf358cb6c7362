// Walks the packed codes of one tap list: weight, entry of the offset table, and address relative to src_base.
#ifndef RASNA_SIM_CODE_WALK_H
#define RASNA_SIM_CODE_WALK_H

#include <stdint.h>

#include <algorithm>

#include "../hls/isa.h"
#include "../hls/tap_list.h"

namespace rasna {

// What every list of a TAPS instruction shares.
struct ListFormat {
    int encoding;             // ENCODING_*
    const TableEntry *table;  // table_entries entries
    int table_entries;        // MIN_TABLE_ENTRIES or more, so that one step wraps at most once
    int group_step;
};

template <bool SPARSE, typename Visit>
inline void walk_encoded(const uint64_t *words, int num_codes, const ListFormat &format, Visit visit) {
    constexpr int PER_WORD = SPARSE ? SPARSE_CODES_PER_WORD : DENSE_CODES_PER_WORD;
    Position at = POSITION_START;
    for (int first = 0; first < num_codes; first += PER_WORD, words++) {
        const int num_slots = std::min(PER_WORD, num_codes - first);
        for (int slot = 0; slot < num_slots; slot++) {
            const Code code = unpack_code(*words, SPARSE, slot);
            at = advance(at, code.run, format.table_entries, 1);  // with a step of 1, group counts the wraps
            visit(code.weight, at.index,
                  static_cast<int64_t>(at.group) * format.group_step + format.table[at.index].offset);
        }
    }
}

// Calls visit(weight, entry, address) for every code, zero weights included. The address has 64 bits: hostile lists may
// leave every range. Lists are at most 32767 codes long, which the list memory of every target ensures.
template <typename Visit>
inline void walk_codes(const uint64_t *words, int num_codes, const ListFormat &format, Visit visit) {
    if (format.encoding == ENCODING_SPARSE)
        walk_encoded<true>(words, num_codes, format, visit);
    else
        walk_encoded<false>(words, num_codes, format, visit);
}

}  // namespace rasna

#endif
