/* A runtime object for tests: it copies INPUT to OUTPUT and adds FAKE_ADD, and can be slow or broken by macros. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rasna_sim.h"

#ifndef FAKE_ABI
#define FAKE_ABI RASNA_ABI_VERSION
#endif
#ifndef FAKE_ISA
#define FAKE_ISA 2
#endif
#ifndef FAKE_TARGET
#define FAKE_TARGET "tiny"
#endif
#ifndef FAKE_ADD
#define FAKE_ADD 0
#endif
#ifndef FAKE_SLEEP_US
#define FAKE_SLEEP_US 0
#endif
#ifndef FAKE_COUNTERS
#define FAKE_COUNTERS 0
#endif
#ifndef FAKE_RUN_ERROR
#define FAKE_RUN_ERROR 0
#endif

struct rasna_context {
    uint64_t input_words, output_words;
};

static const rasna_identity identity = {FAKE_ABI, FAKE_ISA, FAKE_TARGET, FAKE_HASH, "rtl", "fake"};

const rasna_identity *rasna_identify(void) { return &identity; }

int32_t rasna_create(rasna_context **context, char *text, uint64_t text_bytes) {
#ifdef FAKE_CREATE_ERROR
    snprintf(text, text_bytes, "no room");
    return 12;
#else
    (void)text, (void)text_bytes;
    *context = calloc(1, sizeof **context);
    return 0;
#endif
}

void rasna_destroy(rasna_context *context) { free(context); }

int32_t rasna_load(rasna_context *context, const uint64_t *words, uint64_t num_words, uint64_t input_words,
                   uint64_t output_words, uint64_t scratch_words) {
    (void)words, (void)num_words, (void)scratch_words;
    context->input_words = input_words;
    context->output_words = output_words;
    return 0;
}

int32_t rasna_run(rasna_context *context, const uint64_t *inputs, uint64_t *outputs, uint64_t batch) {
    if (FAKE_RUN_ERROR) return FAKE_RUN_ERROR;
    for (uint64_t i = 0; i < batch * context->output_words; i++) outputs[i] = inputs[i] + FAKE_ADD;
    for (uint64_t i = 0; i < batch; i++) usleep(FAKE_SLEEP_US);
    return 0;
}

int32_t rasna_counters(rasna_context *context, uint64_t *cycles, uint64_t capacity, uint64_t *count) {
    (void)context;
    *count = FAKE_COUNTERS;
    for (uint64_t i = 0; i < capacity && i < FAKE_COUNTERS; i++) cycles[i] = 100 + i;
    return 0;
}

int32_t rasna_set_option(rasna_context *context, const char *name, const char *value) {
    (void)context, (void)name, (void)value;
    return 10;
}

int32_t rasna_get_option(rasna_context *context, const char *name, char *value, uint64_t value_bytes) {
    (void)context, (void)name, (void)value, (void)value_bytes;
    return 10;
}

#ifndef FAKE_INCOMPLETE
int32_t rasna_read_map(rasna_context *context, uint32_t slice, uint32_t first_word, uint32_t num_words,
                       uint64_t *words) {
    (void)context, (void)slice, (void)first_word, (void)num_words, (void)words;
    return 10;
}
#endif

int32_t rasna_error_code(const rasna_context *context) { return (void)context, FAKE_RUN_ERROR; }
const char *rasna_error_text(const rasna_context *context) { return (void)context, "it broke"; }
int64_t rasna_error_instruction(const rasna_context *context) { return (void)context, -1; }
