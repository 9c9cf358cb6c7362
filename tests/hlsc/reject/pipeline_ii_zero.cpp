#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=0
    out.write(in.read());
  }
}
#include "frame.h"
// error: pipeline_ii_zero.cpp:4: pipeline II=0: the initiation interval must be at least 1
