#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    for (int k = 0; k < 4; k++) t.a += t.b >> (k + (t.a & 1));
    out.write(t);
  }
}
#include "frame.h"
// error: inner_loop.cpp:6: a loop inside of a pipelined loop was not unrolled; give it #pragma HLS unroll and a constant number of iterations
