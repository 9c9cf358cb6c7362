// The rest of a program around a process work(n, in, out).
void load(port_t mem, uint32_t n, toks &in) {
  mem.read_request(0, n);
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
    uint64_t w = mem.read();
    tok t = {(uint32_t)w, (uint32_t)(w >> 32)};
    in.write(t);
  }
}
void store(port_t mem, uint32_t n, toks &out) {
  mem.write_request(0, n);
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
    tok t = out.read();
    mem.write((uint64_t)t.b << 32 | t.a);
  }
  mem.write_response();
}
extern "C" void core(port_t src, port_t dst, uint32_t n) {
#pragma HLS interface m_axi port=src bundle=src
#pragma HLS interface m_axi port=dst bundle=dst
#pragma HLS dataflow
  toks in, out;
  load(src, n, in);
  work(n, in, out);
  store(dst, n, out);
}
