// First-word fall-through FIFO. Both flags are registers, so that a producer and a consumer never form a combinational
// loop through it.
`default_nettype none

module hls_fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 2
) (
    input  wire              clk,
    input  wire              rst,
    input  wire              write_valid,
    output wire              write_ready,
    input  wire  [WIDTH-1:0] write_data,
    output wire              read_valid,
    input  wire              read_ready,
    output wire  [WIDTH-1:0] read_data
);
  localparam int PTR_BITS = DEPTH > 1 ? $clog2(DEPTH) : 1;
  localparam int COUNT_BITS = $clog2(DEPTH + 1);
  localparam logic [PTR_BITS-1:0] LAST = PTR_BITS'(DEPTH - 1);
  localparam logic [COUNT_BITS-1:0] FULL = COUNT_BITS'(DEPTH);

  logic [WIDTH-1:0] mem[DEPTH];
  logic [PTR_BITS-1:0] write_ptr_reg, read_ptr_reg;
  logic [COUNT_BITS-1:0] count_reg;
  logic full_reg, valid_reg;

  wire push = write_valid & !full_reg;
  wire pop = read_ready & valid_reg;
  wire [COUNT_BITS-1:0] count_next = count_reg + COUNT_BITS'(push) - COUNT_BITS'(pop);

  assign write_ready = !full_reg;
  assign read_valid  = valid_reg;
  assign read_data   = mem[read_ptr_reg];

  always_ff @(posedge clk) begin
    if (push) begin
      mem[write_ptr_reg] <= write_data;
      write_ptr_reg <= write_ptr_reg == LAST ? '0 : write_ptr_reg + 1'b1;
    end
    if (pop) read_ptr_reg <= read_ptr_reg == LAST ? '0 : read_ptr_reg + 1'b1;
    count_reg <= count_next;
    full_reg  <= count_next == FULL;
    valid_reg <= count_next != '0;
    if (rst) begin
      write_ptr_reg <= '0;
      read_ptr_reg <= '0;
      count_reg <= '0;
      full_reg <= 1'b1;  // nothing is accepted during reset
      valid_reg <= 1'b0;
    end
  end
endmodule

`default_nettype wire
