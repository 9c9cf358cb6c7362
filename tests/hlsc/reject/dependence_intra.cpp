#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
#pragma HLS dependence variable=m intra false
    tok t = in.read();
    t.a = m[t.a & 15]++;
    out.write(t);
  }
}
#include "frame.h"
// error: dependence_intra.cpp:6: pragma HLS dependence: option 'intra' is not supported
