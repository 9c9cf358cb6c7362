#include "head.h"
void copy(const uint64_t *mem, uint32_t n, port_t dst) {
  dst.write_request(0, n);
  for (uint32_t i = 0; i < n; i++) dst.write(mem[i]);
}
extern "C" void core(const uint64_t *src, port_t dst, uint32_t n) {
#pragma HLS interface m_axi port=src bundle=src
#pragma HLS interface m_axi port=dst bundle=dst
#pragma HLS dataflow
  copy(src, n, dst);
}
// error: plain_pointer_read.cpp:4: a port is read through a plain pointer; use hls::burst_maxi
