#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
#pragma HLS array_partition variable=m cyclic dim=1
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
#include "frame.h"
// error: partition_factor_missing.cpp:4: pragma HLS array_partition: factor=<banks> goes with cyclic and block only
