// Starts the kernel, counts its cycles, ends the run. A run ends when the kernel is done; when the bus answers with an
// error, before what it sent can do harm; or by a soft reset. In the latter two cases the ports are quiesced first, then
// the kernel is reset, so that the bus is left in order and the next run starts clean.
`default_nettype none

module rasna_control (
    input  wire         clk,
    input  wire         rst,
    // registers
    input  wire         start,
    input  wire         soft_reset,
    input  wire         bases_legal,
    output wire         idle,
    output wire         finish,         // one cycle: a run has ended
    output logic [ 7:0] error_reg,
    output logic [31:0] error_pc_reg,
    output logic [63:0] cycles_reg,
    // kernel
    output wire         kernel_rst,
    output wire         kernel_start,
    input  wire         kernel_done,
    input  wire  [ 7:0] kernel_error,
    input  wire  [31:0] kernel_pc,
    // guards
    output wire         quiesce,
    input  wire         ports_idle,
    input  wire         fault
);
  `include "isa.svh"

  typedef enum logic [1:0] {
    IDLE,
    RUN,
    DRAIN,
    RESET
  } state_t;
  localparam logic [1:0] RESET_CYCLES = 2'd3;

  state_t state_reg;
  logic [1:0] reset_count_reg;
  logic ended_reg;  // what is drained is a run that ended with an error, no soft reset

  wire refuse = state_reg == IDLE && start && !soft_reset && !bases_legal;
  wire begins = state_reg == IDLE && start && !soft_reset && bases_legal;
  wire runs = state_reg == RUN;
  wire ends = runs && kernel_done && !fault && !soft_reset;
  wire reset_ends = state_reg == RESET && reset_count_reg == '0;

  assign idle = state_reg == IDLE;
  assign finish = refuse | ends | (reset_ends & ended_reg & !soft_reset);
  assign kernel_rst = rst | (state_reg == RESET);
  assign kernel_start = state_reg == RUN || state_reg == DRAIN;
  assign quiesce = state_reg == DRAIN || state_reg == RESET;

  always_ff @(posedge clk) begin
    case (state_reg)
      IDLE: if (begins) state_reg <= RUN;
      RUN:
      if (fault) begin
        state_reg <= DRAIN;
        ended_reg <= 1'b1;
        error_reg <= ERROR_BUS;
      end else if (kernel_done) begin
        state_reg <= IDLE;
        error_reg <= kernel_error;
      end
      DRAIN: if (ports_idle) state_reg <= RESET;
      RESET: if (reset_ends) state_reg <= IDLE;
      default: state_reg <= IDLE;
    endcase
    reset_count_reg <= state_reg == RESET ? reset_count_reg - 1'b1 : RESET_CYCLES;
    if (runs) begin
      cycles_reg   <= cycles_reg + 1'b1;
      error_pc_reg <= kernel_pc;
    end
    if (begins || refuse) begin
      error_reg <= refuse ? ERROR_BAD_ARGUMENT : ERROR_OK;
      error_pc_reg <= '0;
      cycles_reg <= '0;
    end
    if (soft_reset) begin
      if (state_reg == IDLE || state_reg == RUN) state_reg <= DRAIN;
      ended_reg <= 1'b0;
      error_reg <= ERROR_OK;
      error_pc_reg <= '0;
      cycles_reg <= '0;
    end
    if (rst) begin
      state_reg <= IDLE;
      reset_count_reg <= RESET_CYCLES;
      ended_reg <= 1'b0;
      error_reg <= ERROR_OK;
      error_pc_reg <= '0;
      cycles_reg <= '0;
    end
  end
endmodule

`default_nettype wire
