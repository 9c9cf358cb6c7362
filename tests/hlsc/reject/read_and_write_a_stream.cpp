#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    if (t.a) in.write(t);
    out.write(t);
  }
}
#include "frame.h"
// error: frame.h:26: stream 'in' is both read and written by process work
