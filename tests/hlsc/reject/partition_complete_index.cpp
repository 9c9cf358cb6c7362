#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[8][8];
#pragma HLS array_partition variable=m complete dim=2
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    m[t.a & 7][t.b & 7] = t.a;
    t.b = m[t.b & 7][0];
    out.write(t);
  }
}
#include "frame.h"
// error: partition_complete_index.cpp:7: dimension 2 of array 'm' is partitioned (complete): index it by constants and unrolled variables only
