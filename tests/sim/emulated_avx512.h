// The AVX-512 VNNI intrinsics that sim/body_vnni.cpp uses, in plain C++, so that its logic is tested on processors that do
// not have them. Written from the description of VPDPBUSD in Intel's Intrinsics Guide.
#ifndef RASNA_TESTS_EMULATED_AVX512_H
#define RASNA_TESTS_EMULATED_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace {

template <typename Vector>
inline Vector emulated_dpbusd(const Vector &acc, const Vector &a, const Vector &b) {
    uint32_t sums[sizeof(Vector) / 4];
    uint8_t bytes[sizeof(Vector)];
    int8_t weights[sizeof(Vector)];
    memcpy(sums, &acc, sizeof sums);
    memcpy(bytes, &a, sizeof bytes);
    memcpy(weights, &b, sizeof weights);
    for (unsigned i = 0; i < sizeof bytes; i++) sums[i / 4] += static_cast<uint32_t>(bytes[i] * weights[i]);
    Vector v;
    memcpy(&v, sums, sizeof v);
    return v;
}

}  // namespace

#define _mm256_dpbusd_epi32 emulated_dpbusd<__m256i>
#define _mm_dpbusd_epi32 emulated_dpbusd<__m128i>

#endif
