#include "head.h"
static uint32_t m[16];
void other(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    m[t.a & 15] = t.b;
    out.write(t);
  }
}
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = m[t.a & 15];
    out.write(t);
  }
}
#define work(n, in, out) toks mid; other(n, in, mid); work(n, mid, out)
#include "frame.h"
// error: shared_array.cpp:13: array 'm' is used by two processes (other and work); move its data through a stream
