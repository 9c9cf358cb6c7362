#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = (uint32_t)((float)t.a * 1.5f);
    out.write(t);
  }
}
#include "frame.h"
// error: floating_point.cpp:5: floating point is not supported; use integers
