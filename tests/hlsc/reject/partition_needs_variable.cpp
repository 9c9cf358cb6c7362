#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
#pragma HLS array_partition complete dim=1
  for (uint32_t i = 0; i < n; i++) out.write(in.read());
}
#include "frame.h"
// error: partition_needs_variable.cpp:3: pragma HLS array_partition needs variable=<name>, not ''
