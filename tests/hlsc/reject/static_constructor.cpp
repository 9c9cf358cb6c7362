#include "head.h"
static uint32_t make();
static uint32_t shared = make();
static uint32_t make() { volatile uint32_t x = 7; return x; }
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a += shared;
    out.write(t);
  }
}
#include "frame.h"
// error: a static object needs a constructor at run time; initialise it with constants
