/* The C interface of every Rasna runtime object that is a shared library.
 *
 * One header, several implementations: the fast functional object (rasna-<target>.so), the exact functional
 * object (rasna-<target>-exact.so) and the verilated one (rasna-<target>-rtl.so). All give the same bits.
 *
 * Rules that hold for all of them:
 * - Words are 64 bits, little endian in memory, as in docs/machine.md. Sizes are in words unless the name says bytes.
 * - Every function that can fail returns one of the error codes of the ISA (ERROR_*, 0 is success; docs/isa.md) and
 *   leaves a text in the context: the instruction, the field, the value given and the values allowed.
 * - No exception and no abort crosses the interface. There are no globals: a context is used by one thread at a time,
 *   different contexts by as many threads as you like. Loading and running call nothing of the caller.
 * - A program is checked as a whole by rasna_load: every address of every instruction, the decoded offsets of every
 *   tap list included. A program that was refused is never executed, not even in part.
 * - Strings are UTF-8 and end with a zero byte. Strings that are returned belong to the object: those of the identity
 *   live as long as it is loaded, error texts until the next call with the same context.
 */
#ifndef RASNA_SIM_H
#define RASNA_SIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RASNA_ABI_VERSION 1

#if defined(__GNUC__)
#define RASNA_API __attribute__((visibility("default")))
#else
#define RASNA_API
#endif

/* What an object is. abi_version stays the first member in all versions: read it before the others. */
typedef struct rasna_identity {
    uint32_t abi_version; /* RASNA_ABI_VERSION of the object */
    uint32_t isa_version; /* ISA_VERSION of python/rasna/isa.py */
    const char *target;      /* "pynq-z2" */
    const char *config_hash; /* 16 hexadecimal digits, Target.config_hash */
    const char *kind;        /* "functional", "functional-exact" or "rtl" */
    const char *build;       /* compiler and options, for people */
} rasna_identity;

typedef struct rasna_context rasna_context;

/* Never fails and needs no context. */
RASNA_API const rasna_identity *rasna_identify(void);

/* Make a context. *context is set only on success. On failure the text (cut to text_bytes, always terminated) goes to
 * `text`, which may be NULL when text_bytes is 0. The environment variable RASNA_BODY is read here. */
RASNA_API int32_t rasna_create(rasna_context **context, char *text, uint64_t text_bytes);

/* Free a context; NULL is allowed. */
RASNA_API void rasna_destroy(rasna_context *context);

/* Check and load a program. `words` is the PROGRAM segment: instructions from word 0 on, and the streams. The words
 * are copied. The segment sizes are those of one image. A failure leaves the context without a program. */
RASNA_API int32_t rasna_load(rasna_context *context, const uint64_t *words, uint64_t num_words, uint64_t input_words,
                             uint64_t output_words, uint64_t scratch_words);

/* Run `batch` images, one after another. inputs: batch * input_words words; outputs: batch * output_words words. Words
 * of the output that the program does not write are 0. A pointer may be NULL when its size is 0. */
RASNA_API int32_t rasna_run(rasna_context *context, const uint64_t *inputs, uint64_t *outputs, uint64_t batch);

/* Cycles of every instruction of the last image, in program order. *count becomes the number of counters that the
 * object has: 0 for a functional object. At most `capacity` values are written; `cycles` may be NULL when it is 0. */
RASNA_API int32_t rasna_counters(rasna_context *context, uint64_t *cycles, uint64_t capacity, uint64_t *count);

/* Options are text, by name. An unknown name or value is ERROR_BAD_ARGUMENT and the text lists what exists.
 *   "body"        functional: the loops in use, "plain", "avx2", "vnni" or "neon"; settable before and after load
 *   "bodies"      functional, read only: what this processor can run, separated by spaces
 *   "step_limit"  most words or tap steps of one instruction that rasna_load accepts; a guard against endless programs
 *   "cache_bytes" functional: most memory for decoded tap lists; what does not fit is decoded anew in every run
 *   "latency", "stall_seed", "stall_percent", "timeout_cycles", "bus_error_at", "bus_hang_at"  rtl: docs/rtl.md
 *   "stop_at"     number of the instruction before which a run ends; -1 (default): at END. For self-checks by layer. */
RASNA_API int32_t rasna_set_option(rasna_context *context, const char *name, const char *value);

/* The value, cut to value_bytes and always terminated. */
RASNA_API int32_t rasna_get_option(rasna_context *context, const char *name, char *value, uint64_t value_bytes);

/* Read the map memory as the last run left it. Of a tensor of S stripes only every (L/S)th slice is meaningful: the
 * fast object keeps the first copy of every stripe. ERROR_MAP_RANGE outside, ERROR_BAD_ARGUMENT where not supported. */
RASNA_API int32_t rasna_read_map(rasna_context *context, uint32_t slice, uint32_t first_word, uint32_t num_words,
                                 uint64_t *words);

/* Code, text and instruction number (-1: none) of the last failed call. The text is "" when nothing has failed.
 * A NULL context gives ERROR_BAD_ARGUMENT and its text. */
RASNA_API int32_t rasna_error_code(const rasna_context *context);
RASNA_API const char *rasna_error_text(const rasna_context *context);
RASNA_API int64_t rasna_error_instruction(const rasna_context *context);

#ifdef __cplusplus
}
#endif

#endif
