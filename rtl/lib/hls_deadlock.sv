// Simulation only: raises `deadlock` once if for CYCLES cycles no process moved although some are not done. Every
// process then reports what it waits for, and the simulation stops (with HLSC_DEADLOCK_CONTINUE it goes on).
`default_nettype none

module hls_deadlock #(
    parameter int NUM = 1,
    parameter int CYCLES = 4096
) (
    input  wire            clk,
    input  wire            rst,
    input  wire  [NUM-1:0] stalled,
    input  wire  [NUM-1:0] done,
    output wire            deadlock
);
`ifndef SYNTHESIS
  int count_reg;
  logic deadlock_reg, stop_reg;

  assign deadlock = deadlock_reg & !rst;

  always @(posedge clk) begin
    if (rst || (stalled | done) != '1 || done == '1) count_reg <= 0;
    else if (count_reg <= CYCLES) count_reg <= count_reg + 1;
    deadlock_reg <= count_reg == CYCLES;
    stop_reg <= deadlock;
`ifndef HLSC_DEADLOCK_CONTINUE
    if (stop_reg && !rst) $fatal(1, "hlsc deadlock: no process moved for %0d cycles", CYCLES);
`endif
    if (rst) begin
      deadlock_reg <= 1'b0;
      stop_reg <= 1'b0;
    end
  end
`else
  assign deadlock = 1'b0;
  wire unused = &{1'b0, clk, rst, stalled, done};
`endif
endmodule

`default_nettype wire
