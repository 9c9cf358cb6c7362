// The C interface over a Machine: arguments are checked here, and every exception becomes a code and a text.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "../hls/isa.h"
#include "../hls/targets.h"
#include "failure.h"
#include "machine.h"
#include "program.h"
#include "rasna_sim.h"
#include "validate.h"

using rasna::fail;
using rasna::Failure;

#ifndef RASNA_BUILD_INFO
#define RASNA_BUILD_INFO "unknown build"
#endif

struct rasna_context {
    std::unique_ptr<rasna::Machine> machine;
    rasna::Program program;
    bool is_loaded = false;
    std::unique_ptr<uint64_t[]> scratch;
    uint64_t step_limit = uint64_t{1} << 32;
    int64_t stop_at = -1;
    Failure error{rasna::ERROR_OK, -1, ""};
};

namespace {

// Runs `action` and returns its error code; Failure::text may be lost for want of memory, the code never.
template <typename Action>
Failure guarded(Action action) {
    try {
        action();
        return {rasna::ERROR_OK, -1, ""};
    } catch (Failure &failure) {
        return std::move(failure);
    } catch (const std::bad_alloc &) {
        return {rasna::ERROR_NO_MEMORY, -1, "not enough memory"};
    } catch (const std::length_error &) {
        return {rasna::ERROR_NO_MEMORY, -1, "not enough memory"};
    } catch (...) {
        return {rasna::ERROR_BAD_ARGUMENT, -1, "internal error"};
    }
}

template <typename Action>
int32_t call(rasna_context *context, Action action) {
    if (!context) return rasna::ERROR_BAD_ARGUMENT;
    Failure failure = guarded(action);
    if (failure.code != rasna::ERROR_OK) context->error = std::move(failure);
    return failure.code;
}

void copy_text(const std::string &text, char *to, uint64_t bytes) {
    if (!to || bytes == 0) return;
    const size_t length = text.size() < bytes - 1 ? text.size() : static_cast<size_t>(bytes - 1);
    memcpy(to, text.data(), length);
    to[length] = 0;
}

int64_t parse_integer(const char *name, const char *text, int64_t lo) {
    char *end = nullptr;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != 0 || errno == ERANGE || value < lo)
        fail(rasna::ERROR_BAD_ARGUMENT, std::string("option ") + name + " is \"" + text + "\", allowed is a number from " +
                                            std::to_string(lo) + " on");
    return value;
}

[[noreturn]] void unknown_option(const rasna_context &context, const char *name) {
    fail(rasna::ERROR_BAD_ARGUMENT, std::string("option \"") + name + "\" is unknown; there are step_limit, stop_at" +
                                        context.machine->option_names());
}

void check_pointer(const void *pointer, const char *name, uint64_t num_words) {
    if (!pointer && num_words)
        fail(rasna::ERROR_BAD_ARGUMENT,
             std::string(name) + " is NULL, but " + std::to_string(num_words) + " words are needed");
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(uint64_t))
        fail(rasna::ERROR_BAD_ARGUMENT, std::string(name) + " is not aligned to 8 bytes, as words must be");
}

void load_program(rasna_context &context, const uint64_t *words, uint64_t num_words, uint64_t input_words,
                  uint64_t output_words, uint64_t scratch_words) {
    context.is_loaded = false;
    check_pointer(words, "words", num_words);
    rasna::Program program;
    program.words.assign(words, words + num_words);
    program.input_words = input_words;
    program.output_words = output_words;
    program.scratch_words = scratch_words;
    rasna::validate(program, context.step_limit);
    if (scratch_words > SIZE_MAX / sizeof(uint64_t)) throw std::bad_alloc();
    context.scratch.reset();
    context.scratch.reset(new uint64_t[scratch_words]());
    context.program = std::move(program);
    context.machine->load(context.program);
    context.is_loaded = true;
}

void run_batch(rasna_context &context, const uint64_t *inputs, uint64_t *outputs, uint64_t batch) {
    if (!context.is_loaded) fail(rasna::ERROR_NO_PROGRAM, "no program is loaded: call rasna_load first");
    const rasna::Program &program = context.program;
    if (batch == 0) return;
    check_pointer(inputs, "inputs", program.input_words);
    check_pointer(outputs, "outputs", program.output_words);
    for (uint64_t image = 0; image < batch; image++) {
        rasna::Segments segments;
        segments.input = program.input_words ? inputs + image * program.input_words : nullptr;
        segments.output = program.output_words ? outputs + image * program.output_words : nullptr;
        segments.scratch = context.scratch.get();
        if (segments.output) memset(segments.output, 0, program.output_words * sizeof(uint64_t));
        context.machine->run(segments, context.stop_at);
    }
}

void set_option(rasna_context &context, const char *name, const char *value) {
    if (!name || !value) fail(rasna::ERROR_BAD_ARGUMENT, "the name and the value of an option must not be NULL");
    if (!strcmp(name, "step_limit"))
        context.step_limit = static_cast<uint64_t>(parse_integer(name, value, 1));
    else if (!strcmp(name, "stop_at"))
        context.stop_at = parse_integer(name, value, -1);
    else if (!context.machine->set_option(name, value))
        unknown_option(context, name);
}

std::string get_option(const rasna_context &context, const char *name) {
    if (!name) fail(rasna::ERROR_BAD_ARGUMENT, "the name of an option must not be NULL");
    std::string value;
    if (!strcmp(name, "step_limit")) return std::to_string(context.step_limit);
    if (!strcmp(name, "stop_at")) return std::to_string(context.stop_at);
    if (!context.machine->get_option(name, value)) unknown_option(context, name);
    return value;
}

void read_map(const rasna_context &context, uint32_t slice, uint32_t first_word, uint32_t num_words, uint64_t *words) {
    check_pointer(words, "words", num_words);
    const uint32_t slices = rasna::Target::slices, map_words = rasna::Target::map_words;
    if (slice >= slices)
        fail(rasna::ERROR_MAP_RANGE,
             "slice is " + std::to_string(slice) + ", allowed are 0 to " + std::to_string(slices - 1));
    if (first_word > map_words || num_words > map_words - first_word)
        fail(rasna::ERROR_MAP_RANGE, "first_word is " + std::to_string(first_word) + " and num_words is " +
                                         std::to_string(num_words) + ", the map memory has " +
                                         std::to_string(map_words) + " words");
    for (uint32_t i = 0; i < num_words; i++) words[i] = context.machine->map_word(slice, first_word + i);
}

}  // namespace

extern "C" {

const rasna_identity *rasna_identify(void) {
    static const rasna_identity identity = {RASNA_ABI_VERSION, rasna::ISA_VERSION, RASNA_TARGET_NAME, RASNA_CONFIG_HASH,
                                            rasna::MACHINE_KIND, RASNA_BUILD_INFO};
    return &identity;
}

int32_t rasna_create(rasna_context **context, char *text, uint64_t text_bytes) {
    const Failure failure = guarded([&] {
        if (!context) fail(rasna::ERROR_BAD_ARGUMENT, "the pointer for the context is NULL");
        const char *body = getenv("RASNA_BODY");
        std::unique_ptr<rasna_context> made(new rasna_context);
        made->machine = rasna::make_machine(body ? body : "");
        *context = made.release();
    });
    copy_text(failure.text, text, text_bytes);
    return failure.code;
}

void rasna_destroy(rasna_context *context) { delete context; }

int32_t rasna_load(rasna_context *context, const uint64_t *words, uint64_t num_words, uint64_t input_words,
                   uint64_t output_words, uint64_t scratch_words) {
    return call(context, [&] { load_program(*context, words, num_words, input_words, output_words, scratch_words); });
}

int32_t rasna_run(rasna_context *context, const uint64_t *inputs, uint64_t *outputs, uint64_t batch) {
    return call(context, [&] { run_batch(*context, inputs, outputs, batch); });
}

int32_t rasna_counters(rasna_context *context, uint64_t *cycles, uint64_t capacity, uint64_t *count) {
    return call(context, [&] {
        if (!count) fail(rasna::ERROR_BAD_ARGUMENT, "count is NULL");
        const std::vector<uint64_t> &counted = context->machine->cycles();
        const uint64_t num_values = counted.size() < capacity ? counted.size() : capacity;
        check_pointer(cycles, "cycles", num_values);
        if (num_values) memcpy(cycles, counted.data(), num_values * sizeof(uint64_t));
        *count = counted.size();
    });
}

int32_t rasna_set_option(rasna_context *context, const char *name, const char *value) {
    return call(context, [&] { set_option(*context, name, value); });
}

int32_t rasna_get_option(rasna_context *context, const char *name, char *value, uint64_t value_bytes) {
    return call(context, [&] { copy_text(get_option(*context, name), value, value_bytes); });
}

int32_t rasna_read_map(rasna_context *context, uint32_t slice, uint32_t first_word, uint32_t num_words,
                       uint64_t *words) {
    return call(context, [&] { read_map(*context, slice, first_word, num_words, words); });
}

int32_t rasna_error_code(const rasna_context *context) {
    return context ? context->error.code : rasna::ERROR_BAD_ARGUMENT;
}

const char *rasna_error_text(const rasna_context *context) {
    return context ? context->error.text.c_str() : "the context is NULL";
}

int64_t rasna_error_instruction(const rasna_context *context) { return context ? context->error.instruction : -1; }

}  // extern "C"
