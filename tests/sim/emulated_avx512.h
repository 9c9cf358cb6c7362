// The AVX-512 intrinsics that sim/body_vnni.cpp uses, in plain C++, so that its logic is tested on processors that do not
// have them. Each is written from its description in Intel's Intrinsics Guide.
#ifndef RASNA_TESTS_EMULATED_AVX512_H
#define RASNA_TESTS_EMULATED_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace {

struct Emulated512 {
    uint8_t bytes[64];
};

template <typename T>
inline T element(const Emulated512 &v, int i) {
    T value;
    memcpy(&value, v.bytes + i * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
inline Emulated512 emulated_set1(T value) {
    Emulated512 v;
    for (unsigned i = 0; i < 64 / sizeof(T); i++) memcpy(v.bytes + i * sizeof(T), &value, sizeof(T));
    return v;
}

inline Emulated512 emulated_zext(__m256i low) {
    Emulated512 v = {};
    memcpy(v.bytes, &low, 32);
    return v;
}

inline Emulated512 emulated_insert(Emulated512 v, __m256i part, int where) {
    memcpy(v.bytes + 32 * where, &part, 32);
    return v;
}

inline Emulated512 emulated_load(const void *from) {
    Emulated512 v;
    memcpy(v.bytes, from, 64);
    return v;
}

inline void emulated_store(void *to, const Emulated512 &v) { memcpy(to, v.bytes, 64); }

inline Emulated512 emulated_and(const Emulated512 &a, const Emulated512 &b) {
    Emulated512 v;
    for (int i = 0; i < 64; i++) v.bytes[i] = a.bytes[i] & b.bytes[i];
    return v;
}

inline Emulated512 emulated_xor(const Emulated512 &a, const Emulated512 &b) {
    Emulated512 v;
    for (int i = 0; i < 64; i++) v.bytes[i] = a.bytes[i] ^ b.bytes[i];
    return v;
}

// Interleaves the low or the high halves of each 128-bit lane.
template <typename T>
inline Emulated512 emulated_unpack(const Emulated512 &a, const Emulated512 &b, bool high) {
    constexpr int PER_LANE = 16 / sizeof(T);
    Emulated512 v;
    for (int lane = 0; lane < 4; lane++)
        for (int i = 0; i < PER_LANE; i++) {
            const T value = element<T>(i % 2 ? b : a, lane * PER_LANE + i / 2 + (high ? PER_LANE / 2 : 0));
            memcpy(v.bytes + (lane * PER_LANE + i) * sizeof(T), &value, sizeof(T));
        }
    return v;
}

inline Emulated512 emulated_dpbusd(const Emulated512 &acc, const Emulated512 &a, const Emulated512 &b) {
    Emulated512 v;
    for (int i = 0; i < 16; i++) {
        uint32_t sum = element<uint32_t>(acc, i);
        for (int k = 0; k < 4; k++)
            sum += static_cast<uint32_t>(static_cast<int>(a.bytes[4 * i + k]) * static_cast<int8_t>(b.bytes[4 * i + k]));
        memcpy(v.bytes + 4 * i, &sum, 4);
    }
    return v;
}

}  // namespace

#define __m512i Emulated512
#define _mm512_set1_epi8(x) emulated_set1<int8_t>(x)
#define _mm512_set1_epi32(x) emulated_set1<int32_t>(x)
#define _mm512_set1_epi64(x) emulated_set1<int64_t>(x)
#define _mm512_zextsi256_si512 emulated_zext
#define _mm512_inserti64x4 emulated_insert
#define _mm512_load_si512 emulated_load
#define _mm512_storeu_si512 emulated_store
#define _mm512_and_si512 emulated_and
#define _mm512_xor_si512 emulated_xor
#define _mm512_unpacklo_epi8(a, b) emulated_unpack<uint8_t>(a, b, false)
#define _mm512_unpackhi_epi8(a, b) emulated_unpack<uint8_t>(a, b, true)
#define _mm512_unpacklo_epi16(a, b) emulated_unpack<uint16_t>(a, b, false)
#define _mm512_unpackhi_epi16(a, b) emulated_unpack<uint16_t>(a, b, true)
#define _mm512_dpbusd_epi32 emulated_dpbusd

#endif
