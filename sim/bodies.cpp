#include "bodies.h"

namespace rasna {

const Body *const ALL_BODIES[] = {
#if defined(__x86_64__)
    &BODY_VNNI, &BODY_AVX2,
#endif
#if defined(__ARM_NEON)
    &BODY_NEON,
#endif
    &BODY_PLAIN, nullptr,
};

#define RASNA_BIT(m, p) ((m) >> (p) & 1 ? 0xffull << 8 * (p) : 0)
#define RASNA_MASK(m)                                                                                          \
    (RASNA_BIT(m, 0) | RASNA_BIT(m, 1) | RASNA_BIT(m, 2) | RASNA_BIT(m, 3) | RASNA_BIT(m, 4) | RASNA_BIT(m, 5) | \
     RASNA_BIT(m, 6) | RASNA_BIT(m, 7))
#define RASNA_MASKS_4(m) RASNA_MASK(m), RASNA_MASK(m + 1), RASNA_MASK(m + 2), RASNA_MASK(m + 3)
#define RASNA_MASKS_16(m) RASNA_MASKS_4(m), RASNA_MASKS_4(m + 4), RASNA_MASKS_4(m + 8), RASNA_MASKS_4(m + 12)
#define RASNA_MASKS_64(m) RASNA_MASKS_16(m), RASNA_MASKS_16(m + 16), RASNA_MASKS_16(m + 32), RASNA_MASKS_16(m + 48)

const uint64_t LANE_BYTES[256] = {RASNA_MASKS_64(0), RASNA_MASKS_64(64), RASNA_MASKS_64(128), RASNA_MASKS_64(192)};

}  // namespace rasna
