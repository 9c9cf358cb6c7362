#include "head.h"
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS array_partition variable=in complete dim=1
    out.write(in.read());
  }
}
#include "frame.h"
// error: partition_parameter.cpp:4: the variable of this pragma (array) must be a static array; write the pragma where it is declared
