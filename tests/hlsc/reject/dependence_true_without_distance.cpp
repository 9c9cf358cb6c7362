#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
#pragma HLS dependence variable=m inter true
    tok t = in.read();
    t.a = m[t.a & 15]++;
    out.write(t);
  }
}
#include "frame.h"
// error: dependence_true_without_distance.cpp:6: pragma HLS dependence: give 'false', or 'true' with distance=<iterations>
