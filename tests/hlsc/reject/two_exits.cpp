#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    for (int k = 0; k < 32; k++) {
#pragma HLS pipeline II=1
      if (t.a >> k & 1) goto found;
      t.b += t.b << 1;
    }
    in.read();
  found:
    out.write(t);
  }
}
#include "frame.h"
// error: two_exits.cpp:14: undefined behaviour: the optimiser proved that this code is never left
