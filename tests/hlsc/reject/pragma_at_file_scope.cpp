#include "head.h"
static uint32_t m[16];
#pragma HLS array_partition variable=m complete
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = m[t.a & 15]++;
    out.write(t);
  }
}
#include "frame.h"
// error: pragma_at_file_scope.cpp:3: pragma HLS array_partition must be inside a function
