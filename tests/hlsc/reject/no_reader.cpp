#include "head.h"
void work(uint32_t n, toks &in, toks &out, toks &extra) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    extra.write(t);
    out.write(t);
  }
}
#define work(n, in, out) toks extra; work(n, in, out, extra)
#include "frame.h"
// error: core: stream 'extra' has no reader
