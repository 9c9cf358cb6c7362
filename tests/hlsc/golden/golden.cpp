// One process per scheduling rule, in a row; golden.txt holds what hlsc must find for every pipelined loop.
#include <stdint.h>
#include "hls_burst_maxi.h"
#include "hls_stream.h"
#define UNROLL _Pragma("HLS unroll")
#define PRAGMA(x) _Pragma(#x)
#define PIPELINE(ii) PRAGMA(HLS pipeline II = ii)
typedef hls::burst_maxi<uint64_t> port_t;
struct tok {
  uint32_t a;
  int16_t b[2];
};
typedef hls::stream<tok> toks;

// Requests one row ahead of the reads; rows are longer than a burst and cross 4 KB.
void load(port_t mem, uint32_t n, toks &out) {
  mem.read_request(3, n);
  for (int row = 0; row < 2; row++) {
    if (row == 0) mem.read_request(100, n);
    for (uint32_t i = 0; i < n; i++) {
      PIPELINE(1)
      uint64_t w = mem.read();
      tok t;
      t.a = (uint32_t)w;
      for (int k = 0; k < 2; k++) { UNROLL t.b[k] = (int16_t)(w >> (32 + 16 * k)); }
      out.write(t);
    }
  }
}

// Recurrence through registers: load, add and store in one cycle.
void accumulate(uint32_t n, toks &in, toks &out) {
  static int32_t acc[4][8];
#pragma HLS array_partition variable=acc complete dim=0
  for (uint32_t i = 0; i < 2 * n; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    for (int k = 0; k < 4; k++) {
#pragma HLS unroll
      for (int l = 0; l < 8; l++) {
#pragma HLS unroll
        acc[k][l] += t.b[k & 1] * (int16_t)(t.a >> (4 * l));
      }
    }
    t.a = (uint32_t)acc[i & 3][7];
    out.write(t);
  }
}

// Read-modify-write of a RAM by a run-time index: the next iteration may need the word.
void histogram(uint32_t n, toks &in, toks &out) {
  static uint32_t count[64];
  for (uint32_t i = 0; i < 2 * n; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    count[t.a & 63] += 1;
    out.write(t);
  }
  for (int i = 0; i < 64; i++) {
#pragma HLS pipeline II=1
    tok t = {count[i], {1, (int16_t)i}};
    out.write(t);
  }
}

// The same with a promise: this loop writes one half and reads the other.
void independent(uint32_t n, toks &in, toks &out) {
  static uint32_t half[128];
  for (uint32_t i = 0; i < 2 * n + 64; i++) {
#pragma HLS pipeline II=1
#pragma HLS dependence variable=half inter false
    tok t = in.read();
    half[t.a & 63] = half[64 + (t.b[0] & 63)] + t.a;
    out.write(t);
  }
}

// A feedback of eight iterations, longer than the pipeline.
void lagged(uint32_t n, toks &in, toks &out) {
  static int32_t ring[16];
  for (uint32_t i = 0; i < 2 * n + 64; i++) {
#pragma HLS pipeline II=1
#pragma HLS dependence variable=ring inter distance=8 true
    tok t = in.read();
    int32_t old = ring[(i - 8) & 15];
    int64_t p = (int64_t)old * t.b[1] + t.a;
    ring[i & 15] = (int32_t)(p >> 3);
    t.a = (uint32_t)old;
    out.write(t);
  }
}

// Two words per cycle: banks by the lowest index bit.
void banks(uint32_t n, toks &in, toks &out) {
  static uint32_t word[64];
#pragma HLS array_partition variable=word cyclic factor=2 dim=1
  for (int i = 0; i < 16; i++) {
#pragma HLS pipeline II=1
    word[2 * i] = n + i;
    word[2 * i + 1] = 3 * i;
  }
  for (uint32_t i = 0; i < 2 * n + 64; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    for (int k = 0; k < 2; k++) {
#pragma HLS unroll
      word[32 + 2 * (i & 15) + k] = t.a + k;
    }
    out.write(t);
  }
  for (int i = 0; i < 32; i++) {
#pragma HLS pipeline II=1
    tok t = {word[2 * i] ^ word[2 * i + 1], {(int16_t)i, 0}};
    out.write(t);
  }
}

// Three reads of one RAM: the port decides.
void three_reads(uint32_t n, toks &in, toks &out) {
  static uint16_t table[32];
  for (uint32_t i = 0; i < 2 * n + 96; i++) {
#pragma HLS pipeline II=1
#pragma HLS dependence variable=table inter false
    tok t = in.read();
    t.a += table[16 + (t.b[0] & 15)] + table[16 + (t.b[1] & 15)] * table[16 + (t.a & 15)];
    table[i & 15] = (uint16_t)i;
    out.write(t);
  }
}

// At most one write per cycle, by exclusive conditions.
void exclusive(uint32_t n, toks &in, toks &out) {
  static uint32_t m[2][16];
#pragma HLS array_partition variable=m complete dim=1
  for (uint32_t i = 0; i < 2 * n + 96; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    switch (t.a & 3) {
      case 0:
        m[0][t.b[0] & 15] = t.a;
        break;
      case 1:
        m[0][t.b[1] & 15] = i;
        break;
      case 2:
        m[0][i & 15] = ~t.a;
        break;
      default:
        m[1][i & 15] = t.a + 1;
    }
    out.write(t);
  }
  for (int i = 0; i < 16; i++) {
#pragma HLS pipeline II=1
    tok t = {m[0][i] - m[1][i], {(int16_t)i, 7}};
    out.write(t);
  }
}

// A wide multiply in a recurrence.
void recurrence(uint32_t n, toks &in, toks &out) {
  int64_t s = 1;
  for (uint32_t i = 0; i < 2 * n + 112; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    s = s * (int32_t)(t.a | 1) + 1;
    t.a ^= (uint32_t)(s >> 32);
    out.write(t);
  }
}

// Constants in a ROM, structs in one RAM.
struct entry {
  int8_t w;
  uint8_t last;
  uint16_t offset[2];
};
void tables(uint32_t n, toks &in, toks &out) {
  static const int16_t rom[16] = {3, -1, 4, -1, 5, -9, 2, -6, 5, -3, 5, -8, 9, -7, 9, -3};
  static entry list[32];
  for (uint32_t i = 0; i < 2 * n + 112; i++) {
#pragma HLS pipeline II=1
#pragma HLS dependence variable=list inter distance=16 true
    tok t = in.read();
    entry e = list[(i - 16) & 31];
    t.b[0] = (int16_t)(t.b[0] + rom[t.a & 15] + e.w);
    t.b[1] = (int16_t)(e.last ? e.offset[0] : e.offset[1]);
    entry f = {(int8_t)t.a, (uint8_t)(t.a >> 8 & 1), {(uint16_t)(t.a >> 9), (uint16_t)i}};
    list[i & 31] = f;
    out.write(t);
  }
}

// A word is read, perhaps overwritten, and read again.
void reload(uint32_t n, toks &in, toks &out) {
  static uint32_t m[8];
  static const uint8_t start[4] = {92, 34, 0, 255};
  for (uint32_t i = 0; i < 2 * n + 112; i++) {
#pragma HLS pipeline II=3
    tok t = in.read();
    uint32_t before = m[t.b[0] & 7];
    m[t.a & 7] = t.a + start[i & 3];
    t.a = 3 * before + m[t.b[0] & 7];
    out.write(t);
  }
}

// A DSP block adds to its product: twice, where the low bits of one are also read by themselves.
// Saturation needs no comparison, and a value that nobody looks at no logic.
#ifdef __HLSC__
extern "C" __attribute__((const)) uint32_t __hls_unspecified();
static uint32_t unspecified() { return __hls_unspecified(); }
#else
static uint32_t unspecified() { return 0; }
#endif
void products(uint32_t n, toks &in, toks &out) {
  for (uint32_t i = 0; i < 2 * n + 112; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    const int64_t wide = (int64_t)((int32_t)(t.a << 8) >> 8) * t.b[0];
    const int64_t rounded = wide + 0x8000;
    const int64_t other = (int64_t)((int32_t)(t.a << 8) >> 8) * t.b[1];
    const uint32_t sixteen = (uint32_t)((other + 0x8000) >> 16) ^ (uint32_t)(uint16_t)other;
    const int64_t sum = (int64_t)((int32_t)(t.a << 12) >> 12) * (t.b[1] & 0x7fff) + t.b[0];
    int64_t small = sum >> 20;
    small = small > 127 ? 127 : small < -128 ? -128 : small;
    uint32_t open = unspecified();
    if (t.b[1] & 1) open = (uint32_t)(rounded >> 16);
    const uint32_t low = (uint32_t)wide & 0x7fff;
    if (t.b[0] & 512) small = 3 - small;
    t.a = ((t.b[1] & 3) == 3 ? open : low) + ((uint32_t)small << 20) + sixteen;
    out.write(t);
  }
}

// Long write bursts with a wait at the end.
void store(port_t mem, uint32_t n, toks &in) {
  mem.write_request(5, 2 * n + 112);
  for (uint32_t i = 0; i < 2 * n + 112; i++) {
#pragma HLS pipeline II=1
    tok t = in.read();
    mem.write((uint64_t)(uint16_t)t.b[1] << 48 | (uint64_t)(uint16_t)t.b[0] << 32 | t.a);
  }
  mem.write_response();
}

extern "C" void core(port_t src, port_t dst, uint32_t n) {
#pragma HLS interface m_axi port=src bundle=src
#pragma HLS interface m_axi port=dst bundle=dst
#pragma HLS interface s_axilite port=n
#pragma HLS dataflow
  toks s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11;
  load(src, n, s0);
  accumulate(n, s0, s1);
  histogram(n, s1, s2);
  independent(n, s2, s3);
  lagged(n, s3, s4);
  banks(n, s4, s5);
  three_reads(n, s5, s6);
  exclusive(n, s6, s7);
  recurrence(n, s7, s8);
  tables(n, s8, s9);
  reload(n, s9, s10);
  products(n, s10, s11);
  store(dst, n, s11);
}
