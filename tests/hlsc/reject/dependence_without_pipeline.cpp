#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t m[16];
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS dependence variable=m inter false
    tok t = in.read();
    t.a = m[t.a & 15]++;
    out.write(t);
  }
}
#include "frame.h"
// error: dependence_without_pipeline.cpp:5: pragma HLS dependence must follow the pipeline pragma of its loop
