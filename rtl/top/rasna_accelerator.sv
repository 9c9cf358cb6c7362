// The accelerator as a host sees it: AXI4-Lite registers (isa.svh), a read-only AXI4 port for the program, an AXI4 port for
// input, output and scratch, and an interrupt. The kernel inside is what hlsc makes of hls/top.cpp.
//
// The kernel takes the data segments as numbers of 8-byte words behind one base, 32 bits each: the three must lie in one
// aligned window of 32 GiB, all four must be aligned to 8 bytes, or the run ends at once with ERROR_BAD_ARGUMENT.
`default_nettype none

module rasna_accelerator #(
    parameter logic [31:0] CONFIG_HASH = '0  // first 32 bits of the target's configuration hash
) (
    input  wire        aclk,
    input  wire        aresetn,
    input  wire [ 6:0] s_axi_awaddr,
    input  wire        s_axi_awvalid,
    output wire        s_axi_awready,
    input  wire [31:0] s_axi_wdata,
    input  wire [ 3:0] s_axi_wstrb,
    input  wire        s_axi_wvalid,
    output wire        s_axi_wready,
    output wire [ 1:0] s_axi_bresp,
    output wire        s_axi_bvalid,
    input  wire        s_axi_bready,
    input  wire [ 6:0] s_axi_araddr,
    input  wire        s_axi_arvalid,
    output wire        s_axi_arready,
    output wire [31:0] s_axi_rdata,
    output wire [ 1:0] s_axi_rresp,
    output wire        s_axi_rvalid,
    input  wire        s_axi_rready,
    output wire        m_axi_program_arid,
    output wire [63:0] m_axi_program_araddr,
    output wire [ 7:0] m_axi_program_arlen,
    output wire [ 2:0] m_axi_program_arsize,
    output wire [ 1:0] m_axi_program_arburst,
    output wire        m_axi_program_arlock,
    output wire [ 3:0] m_axi_program_arcache,
    output wire [ 2:0] m_axi_program_arprot,
    output wire [ 3:0] m_axi_program_arqos,
    output wire        m_axi_program_arvalid,
    input  wire        m_axi_program_arready,
    input  wire        m_axi_program_rid,
    input  wire [63:0] m_axi_program_rdata,
    input  wire [ 1:0] m_axi_program_rresp,
    input  wire        m_axi_program_rlast,
    input  wire        m_axi_program_rvalid,
    output wire        m_axi_program_rready,
    output wire        m_axi_data_arid,
    output wire [63:0] m_axi_data_araddr,
    output wire [ 7:0] m_axi_data_arlen,
    output wire [ 2:0] m_axi_data_arsize,
    output wire [ 1:0] m_axi_data_arburst,
    output wire        m_axi_data_arlock,
    output wire [ 3:0] m_axi_data_arcache,
    output wire [ 2:0] m_axi_data_arprot,
    output wire [ 3:0] m_axi_data_arqos,
    output wire        m_axi_data_arvalid,
    input  wire        m_axi_data_arready,
    input  wire        m_axi_data_rid,
    input  wire [63:0] m_axi_data_rdata,
    input  wire [ 1:0] m_axi_data_rresp,
    input  wire        m_axi_data_rlast,
    input  wire        m_axi_data_rvalid,
    output wire        m_axi_data_rready,
    output wire        m_axi_data_awid,
    output wire [63:0] m_axi_data_awaddr,
    output wire [ 7:0] m_axi_data_awlen,
    output wire [ 2:0] m_axi_data_awsize,
    output wire [ 1:0] m_axi_data_awburst,
    output wire        m_axi_data_awlock,
    output wire [ 3:0] m_axi_data_awcache,
    output wire [ 2:0] m_axi_data_awprot,
    output wire [ 3:0] m_axi_data_awqos,
    output wire        m_axi_data_awvalid,
    input  wire        m_axi_data_awready,
    output wire [63:0] m_axi_data_wdata,
    output wire [ 7:0] m_axi_data_wstrb,
    output wire        m_axi_data_wlast,
    output wire        m_axi_data_wvalid,
    input  wire        m_axi_data_wready,
    input  wire        m_axi_data_bid,
    input  wire [ 1:0] m_axi_data_bresp,
    input  wire        m_axi_data_bvalid,
    output wire        m_axi_data_bready,
    output wire        irq
);
  localparam int WINDOW_BITS = 35;  // 2^32 words

  logic rst_reg;
  always_ff @(posedge aclk) rst_reg <= !aresetn;
  wire rst = rst_reg | !aresetn;

  wire start, soft_reset, idle, finish;
  wire [7:0] error;
  wire [31:0] error_pc;
  wire [63:0] cycles, program_base, input_base, output_base, scratch_base;

  rasna_registers #(
      .CONFIG_HASH(CONFIG_HASH)
  ) u_registers (
      .clk(aclk),
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
      .start(start),
      .soft_reset(soft_reset),
      .idle(idle),
      .finish(finish),
      .error(error),
      .error_pc(error_pc),
      .cycles(cycles),
      .program_base_reg(program_base),
      .input_base_reg(input_base),
      .output_base_reg(output_base),
      .scratch_base_reg(scratch_base),
      .irq(irq)
  );

  wire [63:0] window = {input_base[63:WINDOW_BITS], {WINDOW_BITS{1'b0}}};
  wire bases_legal = output_base[63:WINDOW_BITS] == input_base[63:WINDOW_BITS]
      && scratch_base[63:WINDOW_BITS] == input_base[63:WINDOW_BITS]
      && {program_base[2:0], input_base[2:0], output_base[2:0], scratch_base[2:0]} == '0;

  // The simulator watches these two: cycles of every instruction.
  wire kernel_start  /* verilator public_flat_rd */;
  wire [31:0] kernel_pc  /* verilator public_flat_rd */;
  wire kernel_rst, kernel_done, quiesce, fault, ports_idle;
  wire [31:0] kernel_error;

  rasna_control u_control (
      .clk(aclk),
      .rst(rst),
      .start(start),
      .soft_reset(soft_reset),
      .bases_legal(bases_legal),
      .idle(idle),
      .finish(finish),
      .error_reg(error),
      .error_pc_reg(error_pc),
      .cycles_reg(cycles),
      .kernel_rst(kernel_rst),
      .kernel_start(kernel_start),
      .kernel_done(kernel_done),
      .kernel_error(kernel_error[7:0]),
      .kernel_pc(kernel_pc),
      .quiesce(quiesce),
      .ports_idle(ports_idle),
      .fault(fault)
  );

  wire program_arvalid, program_arready, program_rvalid, program_rready;
  wire data_arvalid, data_arready, data_rvalid, data_rready;
  wire data_awvalid, data_awready, data_wvalid, data_wready, data_bvalid, data_bready;
  wire program_idle, program_fault, read_idle, read_fault, write_idle, write_fault;

  assign ports_idle = program_idle & read_idle & write_idle;
  assign fault = program_fault | read_fault | write_fault;

  rasna_read_guard u_program_guard (
      .clk(aclk),
      .rst(rst),
      .quiesce(quiesce),
      .idle(program_idle),
      .fault(program_fault),
      .kernel_arvalid(program_arvalid),
      .kernel_arready(program_arready),
      .kernel_rvalid(program_rvalid),
      .kernel_rready(program_rready),
      .m_axi_arvalid(m_axi_program_arvalid),
      .m_axi_arready(m_axi_program_arready),
      .m_axi_rresp(m_axi_program_rresp),
      .m_axi_rlast(m_axi_program_rlast),
      .m_axi_rvalid(m_axi_program_rvalid),
      .m_axi_rready(m_axi_program_rready)
  );

  rasna_read_guard u_read_guard (
      .clk(aclk),
      .rst(rst),
      .quiesce(quiesce),
      .idle(read_idle),
      .fault(read_fault),
      .kernel_arvalid(data_arvalid),
      .kernel_arready(data_arready),
      .kernel_rvalid(data_rvalid),
      .kernel_rready(data_rready),
      .m_axi_arvalid(m_axi_data_arvalid),
      .m_axi_arready(m_axi_data_arready),
      .m_axi_rresp(m_axi_data_rresp),
      .m_axi_rlast(m_axi_data_rlast),
      .m_axi_rvalid(m_axi_data_rvalid),
      .m_axi_rready(m_axi_data_rready)
  );

  rasna_write_guard u_write_guard (
      .clk(aclk),
      .rst(rst),
      .quiesce(quiesce),
      .idle(write_idle),
      .fault(write_fault),
      .kernel_awvalid(data_awvalid),
      .kernel_awready(data_awready),
      .kernel_wlast(m_axi_data_wlast),
      .kernel_wvalid(data_wvalid),
      .kernel_wready(data_wready),
      .kernel_bvalid(data_bvalid),
      .kernel_bready(data_bready),
      .m_axi_awvalid(m_axi_data_awvalid),
      .m_axi_awready(m_axi_data_awready),
      .m_axi_wvalid(m_axi_data_wvalid),
      .m_axi_wready(m_axi_data_wready),
      .m_axi_bresp(m_axi_data_bresp),
      .m_axi_bvalid(m_axi_data_bvalid),
      .m_axi_bready(m_axi_data_bready)
  );

  wire [7:0] axi_error;

  // the program is never written: the kernel's write channels of that port are constants
  /* verilator lint_off PINCONNECTEMPTY */
  rasna_top_kernel u_kernel (
      .clk(aclk),
      .rst(kernel_rst),
      .start(kernel_start),
      .done(kernel_done),
      .arg_input_base(input_base[WINDOW_BITS-1:3]),
      .arg_output_base(output_base[WINDOW_BITS-1:3]),
      .arg_scratch_base(scratch_base[WINDOW_BITS-1:3]),
      .out_error(kernel_error),
      .out_error_pc(kernel_pc),
      .base_program(program_base),
      .base_data(window),
      .m_axi_program_arid(m_axi_program_arid),
      .m_axi_program_araddr(m_axi_program_araddr),
      .m_axi_program_arlen(m_axi_program_arlen),
      .m_axi_program_arsize(m_axi_program_arsize),
      .m_axi_program_arburst(m_axi_program_arburst),
      .m_axi_program_arlock(m_axi_program_arlock),
      .m_axi_program_arcache(m_axi_program_arcache),
      .m_axi_program_arprot(m_axi_program_arprot),
      .m_axi_program_arqos(m_axi_program_arqos),
      .m_axi_program_arvalid(program_arvalid),
      .m_axi_program_arready(program_arready),
      .m_axi_program_rid(m_axi_program_rid),
      .m_axi_program_rdata(m_axi_program_rdata),
      .m_axi_program_rresp(m_axi_program_rresp),
      .m_axi_program_rlast(m_axi_program_rlast),
      .m_axi_program_rvalid(program_rvalid),
      .m_axi_program_rready(program_rready),
      .m_axi_program_awid(),
      .m_axi_program_awaddr(),
      .m_axi_program_awlen(),
      .m_axi_program_awsize(),
      .m_axi_program_awburst(),
      .m_axi_program_awlock(),
      .m_axi_program_awcache(),
      .m_axi_program_awprot(),
      .m_axi_program_awqos(),
      .m_axi_program_awvalid(),
      .m_axi_program_awready(1'd0),
      .m_axi_program_wdata(),
      .m_axi_program_wstrb(),
      .m_axi_program_wlast(),
      .m_axi_program_wvalid(),
      .m_axi_program_wready(1'd0),
      .m_axi_program_bid(1'd0),
      .m_axi_program_bresp(2'd0),
      .m_axi_program_bvalid(1'd0),
      .m_axi_program_bready(),
      .m_axi_data_arid(m_axi_data_arid),
      .m_axi_data_araddr(m_axi_data_araddr),
      .m_axi_data_arlen(m_axi_data_arlen),
      .m_axi_data_arsize(m_axi_data_arsize),
      .m_axi_data_arburst(m_axi_data_arburst),
      .m_axi_data_arlock(m_axi_data_arlock),
      .m_axi_data_arcache(m_axi_data_arcache),
      .m_axi_data_arprot(m_axi_data_arprot),
      .m_axi_data_arqos(m_axi_data_arqos),
      .m_axi_data_arvalid(data_arvalid),
      .m_axi_data_arready(data_arready),
      .m_axi_data_rid(m_axi_data_rid),
      .m_axi_data_rdata(m_axi_data_rdata),
      .m_axi_data_rresp(m_axi_data_rresp),
      .m_axi_data_rlast(m_axi_data_rlast),
      .m_axi_data_rvalid(data_rvalid),
      .m_axi_data_rready(data_rready),
      .m_axi_data_awid(m_axi_data_awid),
      .m_axi_data_awaddr(m_axi_data_awaddr),
      .m_axi_data_awlen(m_axi_data_awlen),
      .m_axi_data_awsize(m_axi_data_awsize),
      .m_axi_data_awburst(m_axi_data_awburst),
      .m_axi_data_awlock(m_axi_data_awlock),
      .m_axi_data_awcache(m_axi_data_awcache),
      .m_axi_data_awprot(m_axi_data_awprot),
      .m_axi_data_awqos(m_axi_data_awqos),
      .m_axi_data_awvalid(data_awvalid),
      .m_axi_data_awready(data_awready),
      .m_axi_data_wdata(m_axi_data_wdata),
      .m_axi_data_wstrb(m_axi_data_wstrb),
      .m_axi_data_wlast(m_axi_data_wlast),
      .m_axi_data_wvalid(data_wvalid),
      .m_axi_data_wready(data_wready),
      .m_axi_data_bid(m_axi_data_bid),
      .m_axi_data_bresp(m_axi_data_bresp),
      .m_axi_data_bvalid(data_bvalid),
      .m_axi_data_bready(data_bready),
      .axi_error(axi_error)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // the guards see errors of the bus themselves, and an error code has 8 bits
  wire unused = &{1'b0, axi_error, kernel_error[31:8]};
endmodule

`default_nettype wire
