// Multiplies words by a factor and counts them: a kernel with every kind of register.
#include <stdint.h>
#include "hls_burst_maxi.h"
#include "hls_stream.h"
typedef hls::burst_maxi<uint64_t> port_t;

void load(port_t mem, uint32_t num, hls::stream<uint64_t> &words) {
  mem.read_request(0, num);
  for (uint32_t i = 0; i < num; i++) {
#pragma HLS pipeline II=1
    words.write(mem.read());
  }
}
void scale(uint32_t num, int16_t factor, hls::stream<uint64_t> &words, hls::stream<uint64_t> &out, uint32_t *num_odd) {
  uint32_t odd = 0;
  for (uint32_t i = 0; i < num; i++) {
#pragma HLS pipeline II=1
    uint64_t word = words.read();
    odd += word & 1;
    out.write(word * (uint64_t)(int64_t)factor);
  }
  *num_odd = odd;
}
void store(port_t mem, uint32_t num, hls::stream<uint64_t> &out) {
  mem.write_request(0, num);
  for (uint32_t i = 0; i < num; i++) {
#pragma HLS pipeline II=1
    mem.write(out.read());
  }
  mem.write_response();
}
extern "C" void core(port_t src, port_t dst, uint32_t num, int16_t factor, uint32_t *num_odd) {
#pragma HLS interface m_axi port=src bundle=gmem0
#pragma HLS interface m_axi port=dst bundle=gmem1
#pragma HLS interface s_axilite port=num
#pragma HLS interface s_axilite port=factor
#pragma HLS interface s_axilite port=num_odd
#pragma HLS interface s_axilite port=return
#pragma HLS dataflow
  hls::stream<uint64_t, 4> words, out;
  load(src, num, words);
  scale(num, factor, words, out, num_odd);
  store(dst, num, out);
}
