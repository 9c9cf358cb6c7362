#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    static uint64_t m[8];
    ((uint8_t *)m)[(t.a & 7) * 8 + 1] = (uint8_t)t.b;
    t.a = (uint32_t)m[t.b & 7];
    out.write(t);
  }
}
#include "frame.h"
// error: partial_write.cpp:6: a part of an element of array 'm' is written; write whole elements
