#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
#pragma HLS array_partition variable=m cyclic factor=4 dim=1
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    m[t.a & 15] = t.a;
    t.b = m[t.b & 15];
    out.write(t);
  }
}
#include "frame.h"
// error: partition_cyclic_index.cpp:7: dimension 1 of array 'm' is partitioned (cyclic): the bank (index modulo 4) must be a constant
