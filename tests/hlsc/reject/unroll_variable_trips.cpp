#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    for (uint32_t k = 0; k < (t.b & 7); k++) {
#pragma HLS unroll
      t.a += t.a >> k;
    }
    out.write(t);
  }
}
#include "frame.h"
// error: unroll_variable_trips.cpp:6: a loop inside of a pipelined loop was not unrolled; give it #pragma HLS unroll and a constant number of iterations
