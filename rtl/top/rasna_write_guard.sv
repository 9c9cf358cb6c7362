// Stands between an AXI4 write master and the bus, so that the master can be reset at any time. While `quiesce` is high no
// new burst begins; bursts that have begun are finished with the master's data, which hls_axi_write holds completely
// before it offers the address. When `idle` is high as well, all are answered and the master may be reset. `fault` is
// high with every response that is an error.
`default_nettype none

module rasna_write_guard #(
    parameter int MAX_BURSTS_BITS = 8
) (
    input  wire       clk,
    input  wire       rst,
    input  wire       quiesce,
    output wire       idle,
    output wire       fault,
    // master
    input  wire       kernel_awvalid,
    output wire       kernel_awready,
    input  wire       kernel_wlast,
    input  wire       kernel_wvalid,
    output wire       kernel_wready,
    output wire       kernel_bvalid,
    input  wire       kernel_bready,
    // bus
    output wire       m_axi_awvalid,
    input  wire       m_axi_awready,
    output wire       m_axi_wvalid,
    input  wire       m_axi_wready,
    input  wire [1:0] m_axi_bresp,
    input  wire       m_axi_bvalid,
    output wire       m_axi_bready
);
  logic offered_reg;  // the address was offered and not taken: AXI does not let it go away
  logic [MAX_BURSTS_BITS-1:0] unanswered_reg;  // addresses taken minus responses
  // Addresses taken minus bursts whose data was taken, in two's complement; -1 when the data of an offered address came
  // first, as a bus may wait for data before it takes the address.
  logic [MAX_BURSTS_BITS-1:0] ahead_reg;

  wire pass = !quiesce || offered_reg;
  wire begins = m_axi_awvalid & m_axi_awready;
  wire data_ends = m_axi_wvalid & m_axi_wready & kernel_wlast;
  wire answered = m_axi_bvalid & m_axi_bready;
  // data belongs to an address that was offered
  wire data_pass = ahead_reg == '0 ? m_axi_awvalid : !ahead_reg[MAX_BURSTS_BITS-1];

  assign m_axi_awvalid = kernel_awvalid & pass & !rst;
  assign kernel_awready = m_axi_awready & pass;
  assign m_axi_wvalid = kernel_wvalid & data_pass & !rst;
  assign kernel_wready = m_axi_wready & data_pass;
  assign kernel_bvalid = m_axi_bvalid;
  assign m_axi_bready = kernel_bready & !rst;
  assign idle = unanswered_reg == '0 && !offered_reg;
  assign fault = answered & m_axi_bresp[1];

  always_ff @(posedge clk) begin
    offered_reg <= m_axi_awvalid & !m_axi_awready;
    unanswered_reg <= unanswered_reg + MAX_BURSTS_BITS'(begins) - MAX_BURSTS_BITS'(answered);
    ahead_reg <= ahead_reg + MAX_BURSTS_BITS'(begins) - MAX_BURSTS_BITS'(data_ends);
    if (rst) begin
      offered_reg <= 1'b0;
      unanswered_reg <= '0;
      ahead_reg <= '0;
    end
  end
  // SLVERR and DECERR differ in the lower bit
  wire unused = &{1'b0, m_axi_bresp[0]};
endmodule

`default_nettype wire
