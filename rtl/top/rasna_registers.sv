// The AXI4-Lite registers of isa.svh: byte strobes are honoured, addresses without a register read 0 and ignore writes.
`default_nettype none

module rasna_registers #(
    parameter logic [31:0] CONFIG_HASH = '0
) (
    input  wire         clk,
    input  wire         rst,
    input  wire  [ 6:0] s_axi_awaddr,
    input  wire         s_axi_awvalid,
    output wire         s_axi_awready,
    input  wire  [31:0] s_axi_wdata,
    input  wire  [ 3:0] s_axi_wstrb,
    input  wire         s_axi_wvalid,
    output wire         s_axi_wready,
    output wire  [ 1:0] s_axi_bresp,
    output wire         s_axi_bvalid,
    input  wire         s_axi_bready,
    input  wire  [ 6:0] s_axi_araddr,
    input  wire         s_axi_arvalid,
    output wire         s_axi_arready,
    output wire  [31:0] s_axi_rdata,
    output wire  [ 1:0] s_axi_rresp,
    output wire         s_axi_rvalid,
    input  wire         s_axi_rready,
    output wire         start,          // one cycle
    output wire         soft_reset,     // one cycle
    input  wire         idle,
    input  wire         finish,
    input  wire  [ 7:0] error,
    input  wire  [31:0] error_pc,
    input  wire  [63:0] cycles,
    output logic [63:0] program_base_reg,
    output logic [63:0] input_base_reg,
    output logic [63:0] output_base_reg,
    output logic [63:0] scratch_base_reg,
    output wire         irq
);
  `include "isa.svh"

  logic irq_enable_reg, irq_pending_reg, done_reg;
  wire write_enable, read_enable;
  wire [6:0] write_addr, read_addr;
  wire [31:0] write_data, write_mask;
  logic [31:0] read_data;

  hls_axil #(
      .ADDR_BITS(7)
  ) u_axil (
      .clk(clk),
      .rst(rst),
      .s_axi_awaddr(s_axi_awaddr),
      .s_axi_awvalid(s_axi_awvalid),
      .s_axi_awready(s_axi_awready),
      .s_axi_wdata(s_axi_wdata),
      .s_axi_wstrb(s_axi_wstrb),
      .s_axi_wvalid(s_axi_wvalid),
      .s_axi_wready(s_axi_wready),
      .s_axi_bresp(s_axi_bresp),
      .s_axi_bvalid(s_axi_bvalid),
      .s_axi_bready(s_axi_bready),
      .s_axi_araddr(s_axi_araddr),
      .s_axi_arvalid(s_axi_arvalid),
      .s_axi_arready(s_axi_arready),
      .s_axi_rdata(s_axi_rdata),
      .s_axi_rresp(s_axi_rresp),
      .s_axi_rvalid(s_axi_rvalid),
      .s_axi_rready(s_axi_rready),
      .write_enable(write_enable),
      .write_addr(write_addr),
      .write_data(write_data),
      .write_mask(write_mask),
      .read_enable(read_enable),
      .read_addr(read_addr),
      .read_data(read_data)
  );

  wire [7:0] write_register = {1'b0, write_addr[6:2], 2'b00};
  wire [7:0] read_register = {1'b0, read_addr[6:2], 2'b00};
  wire write_control = write_enable && write_register == REGISTER_CONTROL && write_mask[0];
  wire write_irq_clear = write_enable && write_register == REGISTER_IRQ_CLEAR && write_mask[0];

  wire irq_enable_next = write_control ? write_data[2] : irq_enable_reg;

  assign start = write_control & write_data[0];
  assign soft_reset = write_control & write_data[1];
  assign irq = irq_pending_reg & irq_enable_reg;

  always_comb begin
    case (read_register)
      REGISTER_CONTROL: read_data = {29'd0, irq_enable_reg, 2'b00};
      REGISTER_STATUS: read_data = {16'd0, error, 5'd0, irq_pending_reg, done_reg, idle};
      REGISTER_ERROR_PC: read_data = error_pc;
      REGISTER_ISA_VERSION: read_data = 32'(ISA_VERSION);
      REGISTER_CONFIG_HASH: read_data = CONFIG_HASH;
      REGISTER_PROGRAM_BASE_LO: read_data = program_base_reg[31:0];
      REGISTER_PROGRAM_BASE_HI: read_data = program_base_reg[63:32];
      REGISTER_INPUT_BASE_LO: read_data = input_base_reg[31:0];
      REGISTER_INPUT_BASE_HI: read_data = input_base_reg[63:32];
      REGISTER_OUTPUT_BASE_LO: read_data = output_base_reg[31:0];
      REGISTER_OUTPUT_BASE_HI: read_data = output_base_reg[63:32];
      REGISTER_SCRATCH_BASE_LO: read_data = scratch_base_reg[31:0];
      REGISTER_SCRATCH_BASE_HI: read_data = scratch_base_reg[63:32];
      REGISTER_CYCLES_LO: read_data = cycles[31:0];
      REGISTER_CYCLES_HI: read_data = cycles[63:32];
      default: read_data = '0;
    endcase
  end

  function automatic logic [31:0] masked(input logic [31:0] old_value, input logic [31:0] new_value,
                                         input logic [31:0] mask);
    return (new_value & mask) | (old_value & ~mask);
  endfunction

  always_ff @(posedge clk) begin
    if (write_enable) begin
      case (write_register)
        REGISTER_PROGRAM_BASE_LO: program_base_reg[31:0] <= masked(program_base_reg[31:0], write_data, write_mask);
        REGISTER_PROGRAM_BASE_HI: program_base_reg[63:32] <= masked(program_base_reg[63:32], write_data, write_mask);
        REGISTER_INPUT_BASE_LO: input_base_reg[31:0] <= masked(input_base_reg[31:0], write_data, write_mask);
        REGISTER_INPUT_BASE_HI: input_base_reg[63:32] <= masked(input_base_reg[63:32], write_data, write_mask);
        REGISTER_OUTPUT_BASE_LO: output_base_reg[31:0] <= masked(output_base_reg[31:0], write_data, write_mask);
        REGISTER_OUTPUT_BASE_HI: output_base_reg[63:32] <= masked(output_base_reg[63:32], write_data, write_mask);
        REGISTER_SCRATCH_BASE_LO: scratch_base_reg[31:0] <= masked(scratch_base_reg[31:0], write_data, write_mask);
        REGISTER_SCRATCH_BASE_HI: scratch_base_reg[63:32] <= masked(scratch_base_reg[63:32], write_data, write_mask);
        default: ;
      endcase
    end
    irq_enable_reg <= irq_enable_next;
    if (write_irq_clear && write_data[0]) irq_pending_reg <= 1'b0;
    if (start && idle) done_reg <= 1'b0;
    if (finish) begin
      done_reg <= 1'b1;
      if (irq_enable_next) irq_pending_reg <= 1'b1;
    end
    if (soft_reset) begin
      done_reg <= 1'b0;
      irq_pending_reg <= 1'b0;
    end
    if (rst) begin
      irq_enable_reg <= 1'b0;
      irq_pending_reg <= 1'b0;
      done_reg <= 1'b0;
      program_base_reg <= '0;
      input_base_reg <= '0;
      output_base_reg <= '0;
      scratch_base_reg <= '0;
    end
  end

  // a read has no side effect
  wire unused = &{1'b0, read_enable, write_addr[1:0], read_addr[1:0]};
endmodule

`default_nettype wire
