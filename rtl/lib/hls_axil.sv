// AXI4-Lite register block helper: turns the bus into single-cycle register accesses. It takes one write and one read
// at a time and always answers OKAY. `read_addr` is stable while `read_enable` is high; `read_data` is taken in that cycle.
`default_nettype none

module hls_axil #(
    parameter int ADDR_BITS = 8
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire  [ADDR_BITS-1:0] s_axi_awaddr,
    input  wire                  s_axi_awvalid,
    output wire                  s_axi_awready,
    input  wire  [         31:0] s_axi_wdata,
    input  wire  [          3:0] s_axi_wstrb,
    input  wire                  s_axi_wvalid,
    output wire                  s_axi_wready,
    output wire  [          1:0] s_axi_bresp,
    output logic                 s_axi_bvalid,
    input  wire                  s_axi_bready,
    input  wire  [ADDR_BITS-1:0] s_axi_araddr,
    input  wire                  s_axi_arvalid,
    output wire                  s_axi_arready,
    output logic [         31:0] s_axi_rdata,
    output wire  [          1:0] s_axi_rresp,
    output logic                 s_axi_rvalid,
    input  wire                  s_axi_rready,
    output wire                  write_enable,
    output wire  [ADDR_BITS-1:0] write_addr,
    output wire  [         31:0] write_data,
    output wire  [         31:0] write_mask,
    output wire                  read_enable,
    output wire  [ADDR_BITS-1:0] read_addr,
    input  wire  [         31:0] read_data
);
  // address and data are accepted together
  wire write_go = s_axi_awvalid & s_axi_wvalid & !s_axi_bvalid & !rst;
  wire read_go = s_axi_arvalid & !s_axi_rvalid & !rst;

  assign s_axi_awready = write_go;
  assign s_axi_wready = write_go;
  assign s_axi_bresp = 2'b00;
  assign s_axi_arready = read_go;
  assign s_axi_rresp = 2'b00;

  assign write_enable = write_go;
  assign write_addr = s_axi_awaddr;
  assign write_data = s_axi_wdata;
  assign write_mask = {{8{s_axi_wstrb[3]}}, {8{s_axi_wstrb[2]}}, {8{s_axi_wstrb[1]}}, {8{s_axi_wstrb[0]}}};
  assign read_enable = read_go;
  assign read_addr = s_axi_araddr;

  always_ff @(posedge clk) begin
    if (s_axi_bready) s_axi_bvalid <= 1'b0;
    if (write_go) s_axi_bvalid <= 1'b1;
    if (s_axi_rready) s_axi_rvalid <= 1'b0;
    if (read_go) begin
      s_axi_rvalid <= 1'b1;
      s_axi_rdata <= read_data;
    end
    if (rst) begin
      s_axi_bvalid <= 1'b0;
      s_axi_rvalid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
