#include "head.h"
uint32_t elsewhere(uint32_t);
void work(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    t.a = elsewhere(t.a);
    out.write(t);
  }
}
#include "frame.h"
// error: undefined_function.cpp:6: the function _Z9elsewherej is not defined in this source
