#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
// error: there is no function extern "C" core in the source
