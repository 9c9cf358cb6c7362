// AXI4 read master: (offset, length) requests in elements of DATA_BITS, then that many elements in order.
// A request is split into INCR bursts of at most MAX_BURST beats that do not cross 4 KB. A burst is issued only if the
// buffer has room for all of its beats (credits), so RREADY is always high and the bus is never blocked. `base` must be
// aligned to the element. Requests of length 0 are dropped. The first RRESP that is not OKAY is kept in `error`.
`default_nettype none

module hls_axi_read #(
    parameter int DATA_BITS = 64,
    parameter int MAX_BURST = 64,
    parameter int BUFFER_BEATS = 256,
    parameter int NUM_REQUESTS = 8
) (
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  clear,
    input  wire  [         63:0] base,
    output logic [          1:0] error,
    output wire                  idle,
    input  wire                  rq_valid,
    output wire                  rq_ready,
    input  wire  [         31:0] rq_addr,
    input  wire  [         31:0] rq_len,
    output wire                  rd_valid,
    input  wire                  rd_ready,
    output wire  [DATA_BITS-1:0] rd_data,
    output logic [         63:0] m_axi_araddr,
    output logic [          7:0] m_axi_arlen,
    output wire  [          2:0] m_axi_arsize,
    output wire  [          1:0] m_axi_arburst,
    output logic                 m_axi_arvalid,
    input  wire                  m_axi_arready,
    input  wire  [DATA_BITS-1:0] m_axi_rdata,
    input  wire  [          1:0] m_axi_rresp,
    input  wire                  m_axi_rlast,
    input  wire                  m_axi_rvalid,
    output wire                  m_axi_rready
);
  localparam int BYTE_BITS = $clog2(DATA_BITS / 8);
  localparam int CREDIT_BITS = $clog2(BUFFER_BEATS + 1);

  logic [63:0] addr_reg;
  logic [31:0] left_reg;
  logic [CREDIT_BITS-1:0] credit_reg;

  wire request_valid;
  wire [31:0] request_addr, request_len;
  wire request_ready = left_reg == '0;

  hls_fifo #(
      .WIDTH(64),
      .DEPTH(NUM_REQUESTS)
  ) u_requests (
      .clk(clk),
      .rst(rst),
      .write_valid(rq_valid),
      .write_ready(rq_ready),
      .write_data({rq_addr, rq_len}),
      .read_valid(request_valid),
      .read_ready(request_ready),
      .read_data({request_addr, request_len})
  );

  // beats of the next burst: limited by the request, by MAX_BURST and by the 4 KB boundary
  wire [12:0] to_boundary = (13'h1000 - {1'b0, addr_reg[11:0]}) >> BYTE_BITS;
  wire [12:0] limit = to_boundary < 13'(MAX_BURST) ? to_boundary : 13'(MAX_BURST);
  wire [12:0] beats = left_reg < 32'(limit) ? left_reg[12:0] : limit;
  wire issue = left_reg != '0 && (!m_axi_arvalid || m_axi_arready) && 13'(credit_reg) >= beats;
  wire taken = rd_valid & rd_ready;

  assign m_axi_arsize = 3'(BYTE_BITS);
  assign m_axi_arburst = 2'b01;
  assign idle = left_reg == '0 && !request_valid && credit_reg == CREDIT_BITS'(BUFFER_BEATS) && !m_axi_arvalid;

  always_ff @(posedge clk) begin
    if (m_axi_arready) m_axi_arvalid <= 1'b0;
    if (request_valid && request_ready) begin
      addr_reg <= base + (64'(request_addr) << BYTE_BITS);
      left_reg <= request_len;
    end
    if (issue) begin
      m_axi_araddr <= addr_reg;
      m_axi_arlen <= 8'(beats - 13'd1);
      m_axi_arvalid <= 1'b1;
      addr_reg <= addr_reg + (64'(beats) << BYTE_BITS);
      left_reg <= left_reg - 32'(beats);
    end
    credit_reg <= credit_reg - (issue ? CREDIT_BITS'(beats) : '0) + CREDIT_BITS'(taken);
    if (clear) error <= 2'b00;
    else if (m_axi_rvalid && m_axi_rready && error == 2'b00) error <= m_axi_rresp & {2{m_axi_rresp[1]}};
    if (rst) begin
      m_axi_arvalid <= 1'b0;
      left_reg <= '0;
      credit_reg <= CREDIT_BITS'(BUFFER_BEATS);
      error <= 2'b00;
    end
  end

  hls_fifo #(
      .WIDTH(DATA_BITS),
      .DEPTH(BUFFER_BEATS)
  ) u_buffer (
      .clk(clk),
      .rst(rst),
      .write_valid(m_axi_rvalid),
      .write_ready(m_axi_rready),
      .write_data(m_axi_rdata),
      .read_valid(rd_valid),
      .read_ready(rd_ready),
      .read_data(rd_data)
  );

  // RLAST carries no information for a master that counts its beats
  wire unused = &{1'b0, m_axi_rlast};
endmodule

`default_nettype wire
