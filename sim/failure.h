// How the host side of a runtime object reports what is wrong. The exceptions stay inside: abi.cpp turns every one of
// them into a code and a text.
#ifndef RASNA_SIM_FAILURE_H
#define RASNA_SIM_FAILURE_H

#include <stdint.h>

#include <string>

namespace rasna {

struct Failure {
    int32_t code;         // ERROR_* of hls/isa.h
    int64_t instruction;  // -1: none
    std::string text;
};

[[noreturn]] inline void fail(int32_t code, const std::string &text, int64_t instruction = -1) {
    throw Failure{code, instruction, text};
}

}  // namespace rasna

#endif
