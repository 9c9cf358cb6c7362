#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  uint32_t i = 0;
  do out.write(in.read());
  while (++i < n);
}
#include "frame.h"
// error: do_without_braces.cpp:4: the body of a do loop must be in braces
