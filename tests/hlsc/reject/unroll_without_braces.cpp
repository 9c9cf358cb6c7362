#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    for (int k = 0; k < 4; k++)
#pragma HLS unroll
      t.a += t.b >> k;
    out.write(t);
  }
}
#include "frame.h"
// error: unroll_without_braces.cpp:6: pragma HLS unroll must be the first line of a loop body in braces
