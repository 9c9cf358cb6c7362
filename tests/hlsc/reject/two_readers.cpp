#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
void other(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
#define work(n, in, out) toks mid; work(n, in, mid); other(n, in, out)
#include "frame.h"
// error: frame.h:26: stream 'in' has two readers (work and other)
