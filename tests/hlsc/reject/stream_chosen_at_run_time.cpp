#include "head.h"
void work(uint32_t n, toks &in, toks &out, toks &more) {
  for (uint32_t i = 0; i < n; i++) {
    tok t = in.read();
    (t.a & 1 ? out : more).write(t);
  }
}
void drain(uint32_t n, toks &more) {
  for (uint32_t i = 0; i < n; i++) more.read();
}
#define work(n, in, out) toks more; work(n, in, out, more); drain(n, more)
#include "frame.h"
// error: stream_chosen_at_run_time.cpp:5: the stream or port is chosen at run time, or is not an argument of the process
