#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  uint32_t table[16];
  for (int i = 0; i < 16; i++) table[i] = i;
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    table[t.b & 15] += t.a;
    t.a = table[t.a & 15];
    out.write(t);
  }
}
#include "frame.h"
// error: local_array.cpp:2: the local array or struct 'table' of process work could not be dissolved into values; declare it static, or index it by constants and unrolled variables only
