#include "head.h"
void copy(port_t src, uint32_t n, port_t dst) {
  src.read_request(0, n);
  dst.write_request(0, n);
  for (uint32_t i = 0; i < n; i++) dst.write(src.read());
}
extern "C" void core(port_t src, port_t dst, uint32_t n) {
#pragma HLS interface m_axi port=src bundle=src
#pragma HLS dataflow
  copy(src, n, dst);
}
// error: missing_m_axi_pragma.cpp:10: argument 'dst' needs #pragma HLS interface m_axi port=dst bundle=<name>
