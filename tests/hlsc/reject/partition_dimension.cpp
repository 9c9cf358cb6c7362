#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
#pragma HLS array_partition variable=m complete dim=2
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = m[t.a & 15]++;
    out.write(t);
  }
}
#include "frame.h"
// error: partition_dimension.cpp:4: array 'm' has 1 dimensions, not 2
