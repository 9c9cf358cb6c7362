#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1 rewind
    out.write(in.read());
  }
}
#include "frame.h"
// error: unknown_option.cpp:4: pragma HLS pipeline: option 'rewind' is not supported
