// What an x86-64 processor and its operating system offer to the tap loops. Read from the processor itself, with every
// compiler: __builtin_cpu_supports needs a run-time library that not every toolchain brings, and is 0 without it.
#ifndef RASNA_SIM_PROCESSOR_H
#define RASNA_SIM_PROCESSOR_H

#include <stdint.h>

namespace rasna {

// The words of CPUID and XGETBV that the loops depend on. A leaf that the processor does not have reads as 0.
struct Processor {
    uint32_t leaf_1_ecx;
    uint32_t leaf_7_ebx;
    uint32_t leaf_7_ecx;
    uint32_t xcr0;  // the register state that the operating system saves
};

// These words of the processor that runs this; all 0 where it is no x86-64.
Processor read_processor();

bool has_avx2(const Processor &processor);
bool has_avx512_vnni(const Processor &processor);  // with AVX2, AVX-512 F and VL

}  // namespace rasna

#endif
