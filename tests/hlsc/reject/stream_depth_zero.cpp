#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
extern "C" void core(uint32_t n) {
#pragma HLS dataflow
  toks in, out;
#pragma HLS stream variable=in depth=0
  work(n, in, out);
}
// error: stream_depth_zero.cpp:8: stream depth 0 of in: it must be at least 1
