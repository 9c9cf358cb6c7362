#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
#pragma HLS pipeline II=1
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
#include "frame.h"
// error: pipeline_outside_loop.cpp:3: pragma HLS pipeline must be the first line of a loop body
