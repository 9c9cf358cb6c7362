#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  static uint32_t table[64];
  uint32_t *p = table;
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    *p = t.a;
    p += t.b & 1;
    out.write(t);
  }
}
#include "frame.h"
// error: moving_pointer.cpp:5: a pointer that moves from iteration to iteration; use an index instead
