// Table of constants, one cycle of read latency. Word k is INIT[k * WIDTH +: WIDTH].
`default_nettype none

module hls_rom #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16,
    parameter int ADDR_BITS = 4,
    parameter logic [WIDTH*DEPTH-1:0] INIT = '0
) (
    input  wire                  clk,
    input  wire                  read_enable,
    input  wire  [ADDR_BITS-1:0] read_addr,
    output logic [    WIDTH-1:0] read_data
);
  logic [WIDTH-1:0] mem[DEPTH];

  initial for (int k = 0; k < DEPTH; k++) mem[k] = INIT[k*WIDTH+:WIDTH];

  always_ff @(posedge clk) if (read_enable) read_data <= mem[read_addr];
endmodule

`default_nettype wire
