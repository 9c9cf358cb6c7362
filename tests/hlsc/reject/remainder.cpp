#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = t.a % 10;
    out.write(t);
  }
}
#include "frame.h"
// error: remainder.cpp:5: operator % is not supported; use shifts and masks, or a table
