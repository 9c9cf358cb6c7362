#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
#pragma HLS allocation operation instances=mul limit=1
    t.a *= t.b;
    out.write(t);
  }
}
#include "frame.h"
// error: unknown_pragma.cpp:5: pragma HLS allocation is not supported; supported are array_partition, bind_storage, dataflow, dependence, inline, interface, loop_tripcount, pipeline, stream, unroll
