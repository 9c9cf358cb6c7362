// Runs programs from a file on the C interface and writes their outputs: for objects of another architecture, which
// python cannot load. File of 64-bit words: for every case num_words, input_words, output_words, scratch_words, the
// program, the inputs. Usage: run_cases BODY CASES OUTPUTS
#include <stdio.h>

#include <vector>

#include "rasna_sim.h"

static bool read_words(FILE *file, std::vector<uint64_t> &words, size_t count) {
    words.resize(count);
    return fread(words.data(), sizeof(uint64_t), count, file) == count;
}

static int run_case(rasna_context *context, FILE *cases, FILE *results, const std::vector<uint64_t> &sizes) {
    std::vector<uint64_t> program, inputs, outputs(sizes[2]);
    if (!read_words(cases, program, sizes[0]) || !read_words(cases, inputs, sizes[1])) return 1;
    if (rasna_load(context, program.data(), sizes[0], sizes[1], sizes[2], sizes[3])) return 1;
    if (rasna_run(context, inputs.data(), outputs.data(), 1)) return 1;
    return fwrite(outputs.data(), sizeof(uint64_t), outputs.size(), results) != outputs.size();
}

int main(int, char **arguments) {
    rasna_context *context = nullptr;
    char text[1000];
    if (rasna_create(&context, text, sizeof text)) return puts(text), 1;
    if (rasna_set_option(context, "body", arguments[1])) return puts(rasna_error_text(context)), 1;
    FILE *cases = fopen(arguments[2], "rb"), *results = fopen(arguments[3], "wb");
    if (!cases || !results) return puts("a file cannot be opened"), 1;
    std::vector<uint64_t> sizes;
    while (read_words(cases, sizes, 4))
        if (run_case(context, cases, results, sizes)) return puts(rasna_error_text(context)), 1;
    rasna_destroy(context);
    return fclose(results) != 0;
}
