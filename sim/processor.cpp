#include "processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rasna {
namespace {

// Bits as in Intel's Software Developer's Manual, volume 2 (CPUID) and volume 1, section 13.3 (XCR0).
constexpr uint32_t LEAF_1_ECX_OSXSAVE = 1u << 27, LEAF_1_ECX_AVX = 1u << 28;
constexpr uint32_t LEAF_7_EBX_AVX2 = 1u << 5, LEAF_7_EBX_AVX512F = 1u << 16, LEAF_7_EBX_AVX512VL = 1u << 31;
constexpr uint32_t LEAF_7_ECX_AVX512_VNNI = 1u << 11;
constexpr uint32_t XCR0_SSE = 1u << 1, XCR0_AVX = 1u << 2;
constexpr uint32_t XCR0_OPMASK = 1u << 5, XCR0_ZMM_HIGH_256 = 1u << 6, XCR0_HIGH_16_ZMM = 1u << 7;

constexpr bool all_of(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

}  // namespace

Processor read_processor() {
    Processor processor = {};
#if defined(__x86_64__)
    uint32_t eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return processor;
    processor.leaf_1_ecx = ecx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        processor.leaf_7_ebx = ebx;
        processor.leaf_7_ecx = ecx;
    }
    // XGETBV is an illegal instruction where the operating system has not switched it on.
    if (processor.leaf_1_ecx & LEAF_1_ECX_OSXSAVE)
        __asm__ volatile("xgetbv" : "=a"(processor.xcr0), "=d"(edx) : "c"(0));
#endif
    return processor;
}

bool has_avx2(const Processor &processor) {
    return all_of(processor.leaf_1_ecx, LEAF_1_ECX_OSXSAVE | LEAF_1_ECX_AVX) &&
           all_of(processor.xcr0, XCR0_SSE | XCR0_AVX) && all_of(processor.leaf_7_ebx, LEAF_7_EBX_AVX2);
}

// macOS switches the state of AVX-512 on at the first use only, so this is false there and the AVX2 loops run.
bool has_avx512_vnni(const Processor &processor) {
    return has_avx2(processor) && all_of(processor.xcr0, XCR0_OPMASK | XCR0_ZMM_HIGH_256 | XCR0_HIGH_16_ZMM) &&
           all_of(processor.leaf_7_ebx, LEAF_7_EBX_AVX512F | LEAF_7_EBX_AVX512VL) &&
           all_of(processor.leaf_7_ecx, LEAF_7_ECX_AVX512_VNNI);
}

}  // namespace rasna
