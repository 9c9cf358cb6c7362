// What an object does with a validated program. fast_machine.cpp, exact_machine.cpp and rtl_machine.cpp each implement it;
// an object is linked with one of them.
#ifndef RASNA_SIM_MACHINE_H
#define RASNA_SIM_MACHINE_H

#include <stdint.h>

#include <memory>
#include <string>
#include <vector>

#include "program.h"

namespace rasna {

class Machine {
  public:
    virtual ~Machine() {}

    // The program stays alive and unchanged until the next load. Throws Failure or std::bad_alloc.
    virtual void load(const Program &program) = 0;

    // Run one image up to END, or up to the instruction stop_at (-1: END).
    virtual void run(const Segments &segments, int64_t stop_at) = 0;

    // One word of the map memory as the last run left it. slice and word are inside.
    virtual uint64_t map_word(uint32_t slice, uint32_t word) const = 0;

    // Cycles of every instruction of the last run, in program order; empty for machines without a notion of time.
    virtual const std::vector<uint64_t> &cycles() const {
        static const std::vector<uint64_t> none;
        return none;
    }

    // Options of this kind of machine. Return false for an unknown name; throw Failure for a bad value.
    virtual bool set_option(const std::string &name, const std::string &value) = 0;
    virtual bool get_option(const std::string &name, std::string &value) const = 0;
    virtual const char *option_names() const = 0;  // for messages: ", body, bodies (read only)"
};

extern const char *const MACHINE_KIND;  // "functional", "functional-exact" or "rtl"

// body: what RASNA_BODY says, "" when it is not set. Throws Failure.
std::unique_ptr<Machine> make_machine(const std::string &body);

}  // namespace rasna

#endif
