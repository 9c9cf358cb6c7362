#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
#pragma HLS pipeline II=1
    out.write(t);
  }
}
#include "frame.h"
// error: pipeline_not_first.cpp:5: pragma HLS pipeline must be the first line of a loop body
