#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    static uint32_t one[4], two[4];
    uint32_t *p = t.a & 1 ? one + (t.b & 3) : two;
    if (p == two + (t.a >> 7 & 3)) t.b = 0;
    out.write(t);
  }
}
#include "frame.h"
// error: pointer_comparison.cpp:7: comparison of pointers is not supported
