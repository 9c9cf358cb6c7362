#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    static uint32_t one[4], two[4];
    static uint32_t *which[2];
    which[t.a & 1] = t.b & 1 ? one : two;
    t.a = which[t.b >> 1 & 1][0];
    out.write(t);
  }
}
#include "frame.h"
// error: pointer_in_memory.cpp:7: a pointer is stored in memory; only integers can be
