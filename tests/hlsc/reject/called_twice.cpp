#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
#define work(n, in, out) toks mid; work(n, in, mid); work(n, mid, out)
#include "frame.h"
// error: core: process work is called twice; give each call its own function
