#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    static uint32_t m[8];
    m[t.a & 7] = t.b;
    t.a = m[8];
    out.write(t);
  }
}
#include "frame.h"
// error: index_out_of_bounds.cpp:7: index [8] is outside of array 'm' [8]
