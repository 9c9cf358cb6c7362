#include "head.h"
static uint32_t fib(uint32_t x) { return x < 2 ? x : fib(x - 1) + fib(x - 2); }
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = fib(t.a & 7);
    out.write(t);
  }
}
#include "frame.h"
// error: recursion.cpp:6: a recursive function cannot become hardware
