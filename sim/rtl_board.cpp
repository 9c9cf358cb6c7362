// The verilated accelerator as a board sees it: registers at offsets, one region of memory behind its ports, nothing
// checked for the host. It is what tests put below an unmodified board driver; programs run through rasna_sim.h elsewhere.
//
// Time passes while a register is accessed, and in rasna_board_step. Functions return one of the ISA's error codes.
#include <stdint.h>

#include <exception>
#include <memory>
#include <string>

#include "failure.h"
#include "rasna_sim.h"
#include "rtl_constants.h"
#include "rtl_model.h"

struct rasna_board {
    rasna::Bus bus;
    std::unique_ptr<rasna::RtlModel> model;
    uint64_t seed;
    std::string text;
};

namespace {

// What breaks the AXI protocol, or memory that runs out, must not cross the C interface.
template <class Body>
int32_t guarded(rasna_board *board, Body body) {
    try {
        body();
        return rasna::ERROR_OK;
    } catch (const rasna::Failure &failure) {
        board->text = failure.text;
        return failure.code;
    } catch (const std::exception &error) {
        board->text = error.what();
        return rasna::ERROR_NO_MEMORY;
    }
}

}  // namespace

extern "C" {

// memory: num_bytes bytes that the accelerator sees at address base. They belong to the caller.
RASNA_API rasna_board *rasna_board_create(uint8_t *memory, uint64_t base, uint64_t num_bytes, uint64_t seed) {
    std::unique_ptr<rasna_board> board(new rasna_board());
    board->bus.regions = {{base, num_bytes, memory, true}};
    board->seed = seed;
    if (guarded(board.get(), [&] { board->model.reset(new rasna::RtlModel(board->bus, seed)); })) return nullptr;
    return board.release();
}

RASNA_API void rasna_board_destroy(rasna_board *board) { delete board; }

RASNA_API const char *rasna_board_text(const rasna_board *board) { return board->text.c_str(); }

// The behaviour of the bus from the next start on; see BusOptions. All 0 but latency: an orderly memory.
RASNA_API void rasna_board_set_bus(rasna_board *board, uint32_t latency_cycles, uint64_t stall_seed, uint64_t error_at,
                                   uint64_t hang_at) {
    board->bus.options.latency_cycles = latency_cycles;
    board->bus.options.stall_seed = stall_seed;
    board->bus.options.error_at = error_at;
    board->bus.options.hang_at = hang_at;
}

// Loading the bitstream: a new model, nothing on the way on its ports.
RASNA_API int32_t rasna_board_configure(rasna_board *board) {
    return guarded(board, [&] {
        board->bus.begin_run();
        board->model.reset();
        board->model.reset(new rasna::RtlModel(board->bus, ++board->seed));
    });
}

RASNA_API int32_t rasna_board_write(rasna_board *board, uint32_t offset, uint32_t value) {
    return guarded(board, [&] {
        if (offset == REGISTER_CONTROL && (value & CONTROL_START)) board->bus.begin_run();
        board->model->write_register(offset, value);
    });
}

RASNA_API int32_t rasna_board_read(rasna_board *board, uint32_t offset, uint32_t *value) {
    return guarded(board, [&] { *value = board->model->read_register(offset); });
}

// At least num_reads cycles: reads of a register, which has no side effect.
RASNA_API int32_t rasna_board_step(rasna_board *board, uint64_t num_reads) {
    return guarded(board, [&] {
        for (uint64_t i = 0; i < num_reads; i++) board->model->read_register(REGISTER_ISA_VERSION);
    });
}
}
