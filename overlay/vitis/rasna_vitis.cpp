// The accelerator's top for Vitis HLS: the processes of hls/top.cpp behind ports that rasna_top_kernel.sv joins to the
// register block of rtl/top, so that both compilers give the same registers. Not run with Vitis HLS by this project yet.
#include "top.cpp"

extern "C" void rasna_vitis(MemoryPort program_mem, MemoryPort data_mem, uint32_t input_base,
                            uint32_t output_base, uint32_t scratch_base, uint32_t *out_error,
                            uint32_t *out_error_pc) {
#pragma HLS interface mode=m_axi port=program_mem bundle=program offset=direct
#pragma HLS interface mode=m_axi port=data_mem bundle=data offset=direct
#pragma HLS interface mode=ap_none port=input_base
#pragma HLS interface mode=ap_none port=output_base
#pragma HLS interface mode=ap_none port=scratch_base
#pragma HLS interface mode=ap_vld port=out_error
#pragma HLS interface mode=ap_vld port=out_error_pc
#pragma HLS interface mode=ap_ctrl_hs port=return
#pragma HLS dataflow
  WordStream words;
#pragma HLS stream variable=words depth=PREFETCH_WORDS
  fetch(program_mem, words);
  engine(data_mem, input_base, output_base, scratch_base, words, out_error, out_error_pc);
}
