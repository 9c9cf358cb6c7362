#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
#define work(n, in, out) work(n * 2, in, out)
#include "frame.h"
// error: frame.h:26: the dataflow function may contain stream declarations and process calls only
