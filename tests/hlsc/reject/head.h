// What every refused program starts with.
#include <stdint.h>
#include "hls_burst_maxi.h"
#include "hls_stream.h"
typedef hls::burst_maxi<uint64_t> port_t;
struct tok {
  uint32_t a, b;
};
typedef hls::stream<tok> toks;
