// Simple dual-port RAM, one cycle of read latency, read-first: a read in the cycle of a write to the same word gives the
// old word. Contents start at INIT (all zero if INIT_BITS is 1), like a static array, and survive a reset.
`default_nettype none

module hls_ram #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16,
    parameter int ADDR_BITS = 4,
    parameter int INIT_BITS = 1,
    parameter logic [INIT_BITS-1:0] INIT = '0
) (
    input  wire                  clk,
    input  wire                  read_enable,
    input  wire  [ADDR_BITS-1:0] read_addr,
    output logic [    WIDTH-1:0] read_data,
    input  wire                  write_enable,
    input  wire  [ADDR_BITS-1:0] write_addr,
    input  wire  [    WIDTH-1:0] write_data
);
  logic [WIDTH-1:0] mem[DEPTH];

  generate
    if (INIT_BITS == WIDTH * DEPTH && INIT_BITS > 1) begin : g_init
      initial for (int k = 0; k < DEPTH; k++) mem[k] = INIT[k*WIDTH+:WIDTH];
    end else begin : g_zero
      initial for (int k = 0; k < DEPTH; k++) mem[k] = '0;
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (read_enable) read_data <= mem[read_addr];
    if (write_enable) mem[write_addr] <= write_data;
  end
endmodule

`default_nettype wire
