#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
#pragma HLS array_partition variable=m cyclic factor=3 dim=1
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    m[0] = t.a;
    t.b = m[3];
    out.write(t);
  }
}
#include "frame.h"
// error: partition_factor.cpp:4: array_partition factor 3 must be a power of two from 2 to 16
