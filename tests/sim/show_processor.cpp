// Prints "avx2 avx512_vnni" as 0 or 1: of the four words of CPUID and XGETBV that are given, in hexadecimal, or of this
// processor when none are.
#include <stdio.h>
#include <stdlib.h>

#include "processor.h"

int main(int count, char **arguments) {
    rasna::Processor processor = rasna::read_processor();
    if (count == 5) {
        uint32_t words[4];
        for (int i = 0; i < 4; i++) words[i] = static_cast<uint32_t>(strtoul(arguments[i + 1], nullptr, 16));
        processor = {words[0], words[1], words[2], words[3]};
    }
    printf("%d %d\n", rasna::has_avx2(processor), rasna::has_avx512_vnni(processor));
}
