// Stands between an AXI4 read master and the bus, so that the master can be reset at any time. While `quiesce` is high no
// new burst begins, an address that is already offered stays until it is taken, and beats that still come are dropped.
// When `idle` is high as well, nothing is on its way and the master may be reset. `fault` is high with every beat whose
// response is an error.
`default_nettype none

module rasna_read_guard #(
    parameter int MAX_BURSTS_BITS = 8
) (
    input  wire       clk,
    input  wire       rst,
    input  wire       quiesce,
    output wire       idle,
    output wire       fault,
    // master
    input  wire       kernel_arvalid,
    output wire       kernel_arready,
    output wire       kernel_rvalid,
    input  wire       kernel_rready,
    // bus
    output wire       m_axi_arvalid,
    input  wire       m_axi_arready,
    input  wire [1:0] m_axi_rresp,
    input  wire       m_axi_rlast,
    input  wire       m_axi_rvalid,
    output wire       m_axi_rready
);
  logic offered_reg;  // the address was offered and not taken: AXI does not let it go away
  logic [MAX_BURSTS_BITS-1:0] bursts_reg;  // bursts whose last beat has not come

  wire pass = !quiesce || offered_reg;
  wire begins = m_axi_arvalid & m_axi_arready;
  wire beat = m_axi_rvalid & m_axi_rready;

  assign m_axi_arvalid = kernel_arvalid & pass & !rst;
  assign kernel_arready = m_axi_arready & pass;
  assign kernel_rvalid = m_axi_rvalid & !quiesce;
  assign m_axi_rready = (kernel_rready | quiesce) & !rst;
  assign idle = bursts_reg == '0 && !offered_reg;
  assign fault = beat & m_axi_rresp[1];

  always_ff @(posedge clk) begin
    offered_reg <= m_axi_arvalid & !m_axi_arready;
    bursts_reg  <= bursts_reg + MAX_BURSTS_BITS'(begins) - MAX_BURSTS_BITS'(beat & m_axi_rlast);
    if (rst) begin
      offered_reg <= 1'b0;
      bursts_reg  <= '0;
    end
  end
  // SLVERR and DECERR differ in the lower bit
  wire unused = &{1'b0, m_axi_rresp[0]};
endmodule

`default_nettype wire
