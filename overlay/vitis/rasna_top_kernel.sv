// The kernel that Vitis HLS makes of rasna_vitis.cpp, with the ports that rtl/top expects of the one that hlsc makes.
// Not run with Vitis HLS or Vivado by this project yet; the port names are those that its manual gives for these pragmas.
`default_nettype none

module rasna_top_kernel (
    input wire clk,
    input wire rst,
    input wire start,
    output wire done,
    input wire [31:0] arg_input_base,
    input wire [31:0] arg_output_base,
    input wire [31:0] arg_scratch_base,
    output wire [31:0] out_error,
    output wire [31:0] out_error_pc,
    input wire [63:0] base_program,
    output wire m_axi_program_awid,
    output wire [63:0] m_axi_program_awaddr,
    output wire [7:0] m_axi_program_awlen,
    output wire [2:0] m_axi_program_awsize,
    output wire [1:0] m_axi_program_awburst,
    output wire m_axi_program_awlock,
    output wire [3:0] m_axi_program_awcache,
    output wire [2:0] m_axi_program_awprot,
    output wire [3:0] m_axi_program_awqos,
    output wire m_axi_program_awvalid,
    input wire m_axi_program_awready,
    output wire [63:0] m_axi_program_wdata,
    output wire [7:0] m_axi_program_wstrb,
    output wire m_axi_program_wlast,
    output wire m_axi_program_wvalid,
    input wire m_axi_program_wready,
    input wire m_axi_program_bid,
    input wire [1:0] m_axi_program_bresp,
    input wire m_axi_program_bvalid,
    output wire m_axi_program_bready,
    output wire m_axi_program_arid,
    output wire [63:0] m_axi_program_araddr,
    output wire [7:0] m_axi_program_arlen,
    output wire [2:0] m_axi_program_arsize,
    output wire [1:0] m_axi_program_arburst,
    output wire m_axi_program_arlock,
    output wire [3:0] m_axi_program_arcache,
    output wire [2:0] m_axi_program_arprot,
    output wire [3:0] m_axi_program_arqos,
    output wire m_axi_program_arvalid,
    input wire m_axi_program_arready,
    input wire m_axi_program_rid,
    input wire [63:0] m_axi_program_rdata,
    input wire [1:0] m_axi_program_rresp,
    input wire m_axi_program_rlast,
    input wire m_axi_program_rvalid,
    output wire m_axi_program_rready,
    input wire [63:0] base_data,
    output wire m_axi_data_awid,
    output wire [63:0] m_axi_data_awaddr,
    output wire [7:0] m_axi_data_awlen,
    output wire [2:0] m_axi_data_awsize,
    output wire [1:0] m_axi_data_awburst,
    output wire m_axi_data_awlock,
    output wire [3:0] m_axi_data_awcache,
    output wire [2:0] m_axi_data_awprot,
    output wire [3:0] m_axi_data_awqos,
    output wire m_axi_data_awvalid,
    input wire m_axi_data_awready,
    output wire [63:0] m_axi_data_wdata,
    output wire [7:0] m_axi_data_wstrb,
    output wire m_axi_data_wlast,
    output wire m_axi_data_wvalid,
    input wire m_axi_data_wready,
    input wire m_axi_data_bid,
    input wire [1:0] m_axi_data_bresp,
    input wire m_axi_data_bvalid,
    output wire m_axi_data_bready,
    output wire m_axi_data_arid,
    output wire [63:0] m_axi_data_araddr,
    output wire [7:0] m_axi_data_arlen,
    output wire [2:0] m_axi_data_arsize,
    output wire [1:0] m_axi_data_arburst,
    output wire m_axi_data_arlock,
    output wire [3:0] m_axi_data_arcache,
    output wire [2:0] m_axi_data_arprot,
    output wire [3:0] m_axi_data_arqos,
    output wire m_axi_data_arvalid,
    input wire m_axi_data_arready,
    input wire m_axi_data_rid,
    input wire [63:0] m_axi_data_rdata,
    input wire [1:0] m_axi_data_rresp,
    input wire m_axi_data_rlast,
    input wire m_axi_data_rvalid,
    output wire m_axi_data_rready,
    output wire [7:0] axi_error
);
  // Vitis HLS drives two bits of AxLOCK, as AXI3 has them; AXI4 has the lower one.
  wire [1:0] m_axi_program_awlock_wide;
  assign m_axi_program_awlock = m_axi_program_awlock_wide[0];
  wire [1:0] m_axi_program_arlock_wide;
  assign m_axi_program_arlock = m_axi_program_arlock_wide[0];
  wire [1:0] m_axi_data_awlock_wide;
  assign m_axi_data_awlock = m_axi_data_awlock_wide[0];
  wire [1:0] m_axi_data_arlock_wide;
  assign m_axi_data_arlock = m_axi_data_arlock_wide[0];

  // `start` is a level that lasts as long as the run. A dataflow kernel would begin anew when ap_start outlasts ap_ready.
  logic taken_reg;
  wire ap_ready, ap_done, out_error_valid, out_error_pc_valid;
  wire [31:0] error_value, error_pc_value;
  logic [31:0] error_reg, error_pc_reg;

  assign done = ap_done;
  assign out_error = out_error_valid ? error_value : error_reg;
  assign out_error_pc = out_error_pc_valid ? error_pc_value : error_pc_reg;
  assign axi_error = '0;  // the guards of rtl/top see errors of the bus themselves

  always_ff @(posedge clk) begin
    taken_reg <= start & (taken_reg | ap_ready);
    error_reg <= out_error;
    error_pc_reg <= out_error_pc;
    if (rst) begin
      taken_reg <= 1'b0;
      error_reg <= '0;
      error_pc_reg <= '0;
    end
  end

  /* verilator lint_off PINCONNECTEMPTY */
  rasna_vitis u_vitis (
      .m_axi_program_AWID(m_axi_program_awid),
      .m_axi_program_AWADDR(m_axi_program_awaddr),
      .m_axi_program_AWLEN(m_axi_program_awlen),
      .m_axi_program_AWSIZE(m_axi_program_awsize),
      .m_axi_program_AWBURST(m_axi_program_awburst),
      .m_axi_program_AWLOCK(m_axi_program_awlock_wide),
      .m_axi_program_AWCACHE(m_axi_program_awcache),
      .m_axi_program_AWPROT(m_axi_program_awprot),
      .m_axi_program_AWQOS(m_axi_program_awqos),
      .m_axi_program_AWVALID(m_axi_program_awvalid),
      .m_axi_program_AWREADY(m_axi_program_awready),
      .m_axi_program_WDATA(m_axi_program_wdata),
      .m_axi_program_WSTRB(m_axi_program_wstrb),
      .m_axi_program_WLAST(m_axi_program_wlast),
      .m_axi_program_WVALID(m_axi_program_wvalid),
      .m_axi_program_WREADY(m_axi_program_wready),
      .m_axi_program_BID(m_axi_program_bid),
      .m_axi_program_BRESP(m_axi_program_bresp),
      .m_axi_program_BVALID(m_axi_program_bvalid),
      .m_axi_program_BREADY(m_axi_program_bready),
      .m_axi_program_ARID(m_axi_program_arid),
      .m_axi_program_ARADDR(m_axi_program_araddr),
      .m_axi_program_ARLEN(m_axi_program_arlen),
      .m_axi_program_ARSIZE(m_axi_program_arsize),
      .m_axi_program_ARBURST(m_axi_program_arburst),
      .m_axi_program_ARLOCK(m_axi_program_arlock_wide),
      .m_axi_program_ARCACHE(m_axi_program_arcache),
      .m_axi_program_ARPROT(m_axi_program_arprot),
      .m_axi_program_ARQOS(m_axi_program_arqos),
      .m_axi_program_ARVALID(m_axi_program_arvalid),
      .m_axi_program_ARREADY(m_axi_program_arready),
      .m_axi_program_RID(m_axi_program_rid),
      .m_axi_program_RDATA(m_axi_program_rdata),
      .m_axi_program_RRESP(m_axi_program_rresp),
      .m_axi_program_RLAST(m_axi_program_rlast),
      .m_axi_program_RVALID(m_axi_program_rvalid),
      .m_axi_program_RREADY(m_axi_program_rready),
      .m_axi_data_AWID(m_axi_data_awid),
      .m_axi_data_AWADDR(m_axi_data_awaddr),
      .m_axi_data_AWLEN(m_axi_data_awlen),
      .m_axi_data_AWSIZE(m_axi_data_awsize),
      .m_axi_data_AWBURST(m_axi_data_awburst),
      .m_axi_data_AWLOCK(m_axi_data_awlock_wide),
      .m_axi_data_AWCACHE(m_axi_data_awcache),
      .m_axi_data_AWPROT(m_axi_data_awprot),
      .m_axi_data_AWQOS(m_axi_data_awqos),
      .m_axi_data_AWVALID(m_axi_data_awvalid),
      .m_axi_data_AWREADY(m_axi_data_awready),
      .m_axi_data_WDATA(m_axi_data_wdata),
      .m_axi_data_WSTRB(m_axi_data_wstrb),
      .m_axi_data_WLAST(m_axi_data_wlast),
      .m_axi_data_WVALID(m_axi_data_wvalid),
      .m_axi_data_WREADY(m_axi_data_wready),
      .m_axi_data_BID(m_axi_data_bid),
      .m_axi_data_BRESP(m_axi_data_bresp),
      .m_axi_data_BVALID(m_axi_data_bvalid),
      .m_axi_data_BREADY(m_axi_data_bready),
      .m_axi_data_ARID(m_axi_data_arid),
      .m_axi_data_ARADDR(m_axi_data_araddr),
      .m_axi_data_ARLEN(m_axi_data_arlen),
      .m_axi_data_ARSIZE(m_axi_data_arsize),
      .m_axi_data_ARBURST(m_axi_data_arburst),
      .m_axi_data_ARLOCK(m_axi_data_arlock_wide),
      .m_axi_data_ARCACHE(m_axi_data_arcache),
      .m_axi_data_ARPROT(m_axi_data_arprot),
      .m_axi_data_ARQOS(m_axi_data_arqos),
      .m_axi_data_ARVALID(m_axi_data_arvalid),
      .m_axi_data_ARREADY(m_axi_data_arready),
      .m_axi_data_RID(m_axi_data_rid),
      .m_axi_data_RDATA(m_axi_data_rdata),
      .m_axi_data_RRESP(m_axi_data_rresp),
      .m_axi_data_RLAST(m_axi_data_rlast),
      .m_axi_data_RVALID(m_axi_data_rvalid),
      .m_axi_data_RREADY(m_axi_data_rready),
      .m_axi_program_AWREGION(),
      .m_axi_program_AWUSER(),
      .m_axi_program_WID(),
      .m_axi_program_WUSER(),
      .m_axi_program_ARREGION(),
      .m_axi_program_ARUSER(),
      .m_axi_program_RUSER(1'b0),
      .m_axi_program_BUSER(1'b0),
      .m_axi_data_AWREGION(),
      .m_axi_data_AWUSER(),
      .m_axi_data_WID(),
      .m_axi_data_WUSER(),
      .m_axi_data_ARREGION(),
      .m_axi_data_ARUSER(),
      .m_axi_data_RUSER(1'b0),
      .m_axi_data_BUSER(1'b0),
      .ap_clk(clk),
      .ap_rst_n(!rst),
      .ap_start(start & !taken_reg),
      .ap_ready(ap_ready),
      .ap_done(ap_done),
      .ap_idle(),
      .program_mem(base_program),
      .data_mem(base_data),
      .input_base(arg_input_base),
      .output_base(arg_output_base),
      .scratch_base(arg_scratch_base),
      .out_error(error_value),
      .out_error_ap_vld(out_error_valid),
      .out_error_pc(error_pc_value),
      .out_error_pc_ap_vld(out_error_pc_valid)
  );
  /* verilator lint_on PINCONNECTEMPTY */
  wire unused = &{1'b0, m_axi_program_awlock_wide[1], m_axi_program_arlock_wide[1], m_axi_data_awlock_wide[1], m_axi_data_arlock_wide[1]};
endmodule

`default_nettype wire
