// AXI4 write master: (offset, length) requests in elements of DATA_BITS, then that many elements in order.
// A request is split into INCR bursts of at most MAX_BURST beats that do not cross 4 KB. A burst is issued only once all
// of its data is in the buffer, so the bus is never held for a slow producer. `base` must be aligned to the element.
// `wb_valid` says that all bursts of the oldest request are answered. The first BRESP that is not OKAY is kept in `error`.
`default_nettype none

module hls_axi_write #(
    parameter int DATA_BITS = 64,
    parameter int MAX_BURST = 64,
    parameter int BUFFER_BEATS = 128,
    parameter int NUM_REQUESTS = 8
) (
    input  wire                    clk,
    input  wire                    rst,
    input  wire                    clear,
    input  wire  [           63:0] base,
    output logic [            1:0] error,
    output wire                    idle,
    input  wire                    wq_valid,
    output wire                    wq_ready,
    input  wire  [           31:0] wq_addr,
    input  wire  [           31:0] wq_len,
    input  wire                    wd_valid,
    output wire                    wd_ready,
    input  wire  [  DATA_BITS-1:0] wd_data,
    output wire                    wb_valid,
    input  wire                    wb_ready,
    output logic [           63:0] m_axi_awaddr,
    output logic [            7:0] m_axi_awlen,
    output wire  [            2:0] m_axi_awsize,
    output wire  [            1:0] m_axi_awburst,
    output logic                   m_axi_awvalid,
    input  wire                    m_axi_awready,
    output wire  [  DATA_BITS-1:0] m_axi_wdata,
    output wire  [DATA_BITS/8-1:0] m_axi_wstrb,
    output wire                    m_axi_wlast,
    output wire                    m_axi_wvalid,
    input  wire                    m_axi_wready,
    input  wire  [            1:0] m_axi_bresp,
    input  wire                    m_axi_bvalid,
    output wire                    m_axi_bready
);
  localparam int BYTE_BITS = $clog2(DATA_BITS / 8);
  localparam int COUNT_BITS = $clog2(BUFFER_BEATS + 1);
  localparam int NUM_BURSTS = 16;
  localparam int BURST_BITS = $clog2(NUM_BURSTS + 1);

  logic [63:0] addr_reg;
  logic [31:0] left_reg;
  logic empty_request_reg;  // a request of length 0 waits for its turn to be answered
  logic [COUNT_BITS-1:0] unclaimed_reg;  // beats in the buffer that belong to no issued burst
  logic [BURST_BITS-1:0] outstanding_reg;  // issued bursts without response
  logic [15:0] answered_reg;  // requests that are complete and were not yet waited for
  logic [7:0] beat_reg;

  wire request_valid;
  wire [31:0] request_addr, request_len;
  wire request_ready = left_reg == '0 && !empty_request_reg;

  hls_fifo #(
      .WIDTH(64),
      .DEPTH(NUM_REQUESTS)
  ) u_requests (
      .clk(clk),
      .rst(rst),
      .write_valid(wq_valid),
      .write_ready(wq_ready),
      .write_data({wq_addr, wq_len}),
      .read_valid(request_valid),
      .read_ready(request_ready),
      .read_data({request_addr, request_len})
  );

  wire [12:0] to_boundary = (13'h1000 - {1'b0, addr_reg[11:0]}) >> BYTE_BITS;
  wire [12:0] limit = to_boundary < 13'(MAX_BURST) ? to_boundary : 13'(MAX_BURST);
  wire [12:0] beats = left_reg < 32'(limit) ? left_reg[12:0] : limit;
  wire [7:0] beats_less_one = 8'(beats - 13'd1);
  wire lengths_ready;
  wire issue = left_reg != '0 && (!m_axi_awvalid || m_axi_awready) && lengths_ready
      && 13'(unclaimed_reg) >= beats && outstanding_reg != BURST_BITS'(NUM_BURSTS);
  wire last_burst = left_reg == 32'(beats);

  // lengths of issued bursts, for the write data channel
  wire length_valid;
  wire [7:0] length;
  wire beat_done = m_axi_wvalid & m_axi_wready;

  hls_fifo #(
      .WIDTH(8),
      .DEPTH(NUM_BURSTS)
  ) u_lengths (
      .clk(clk),
      .rst(rst),
      .write_valid(issue),
      .write_ready(lengths_ready),
      .write_data(beats_less_one),
      .read_valid(length_valid),
      .read_ready(beat_done & m_axi_wlast),
      .read_data(length)
  );

  // which bursts end a request, for the response channel; it never holds more than NUM_BURSTS
  wire ends_ready, ends_valid, ends_request;
  wire response = m_axi_bvalid & m_axi_bready;

  hls_fifo #(
      .WIDTH(1),
      .DEPTH(NUM_BURSTS)
  ) u_ends (
      .clk(clk),
      .rst(rst),
      .write_valid(issue),
      .write_ready(ends_ready),
      .write_data(last_burst),
      .read_valid(ends_valid),
      .read_ready(response),
      .read_data(ends_request)
  );

  wire buffer_valid;
  wire put = wd_valid & wd_ready;

  hls_fifo #(
      .WIDTH(DATA_BITS),
      .DEPTH(BUFFER_BEATS)
  ) u_buffer (
      .clk(clk),
      .rst(rst),
      .write_valid(wd_valid),
      .write_ready(wd_ready),
      .write_data(wd_data),
      .read_valid(buffer_valid),
      .read_ready(beat_done),
      .read_data(m_axi_wdata)
  );

  wire answer_empty = empty_request_reg && outstanding_reg == '0;
  wire answered = (response & ends_request) | answer_empty;
  wire waited = wb_valid & wb_ready;

  assign m_axi_awsize = 3'(BYTE_BITS);
  assign m_axi_awburst = 2'b01;
  assign m_axi_wstrb = '1;
  assign m_axi_wvalid = length_valid & buffer_valid;
  assign m_axi_wlast = beat_reg == length;
  assign m_axi_bready = 1'b1;
  assign wb_valid = answered_reg != '0;
  assign idle = left_reg == '0 && !request_valid && !empty_request_reg && outstanding_reg == '0;

  always_ff @(posedge clk) begin
    if (m_axi_awready) m_axi_awvalid <= 1'b0;
    if (request_valid && request_ready) begin
      addr_reg <= base + (64'(request_addr) << BYTE_BITS);
      left_reg <= request_len;
      empty_request_reg <= request_len == '0;
    end
    if (answer_empty) empty_request_reg <= 1'b0;
    if (issue) begin
      m_axi_awaddr <= addr_reg;
      m_axi_awlen <= beats_less_one;
      m_axi_awvalid <= 1'b1;
      addr_reg <= addr_reg + (64'(beats) << BYTE_BITS);
      left_reg <= left_reg - 32'(beats);
    end
    unclaimed_reg <= unclaimed_reg + COUNT_BITS'(put) - (issue ? COUNT_BITS'(beats) : '0);
    outstanding_reg <= outstanding_reg + BURST_BITS'(issue) - BURST_BITS'(response);
    answered_reg <= answered_reg + 16'(answered) - 16'(waited);
    if (beat_done) beat_reg <= m_axi_wlast ? '0 : beat_reg + 1'b1;
    if (clear) begin
      error <= 2'b00;
      answered_reg <= '0;
    end else if (response && error == 2'b00) error <= m_axi_bresp & {2{m_axi_bresp[1]}};
    if (rst) begin
      m_axi_awvalid <= 1'b0;
      left_reg <= '0;
      empty_request_reg <= 1'b0;
      unclaimed_reg <= '0;
      outstanding_reg <= '0;
      answered_reg <= '0;
      beat_reg <= '0;
      error <= 2'b00;
    end
  end

  // both queues have NUM_BURSTS places, as many as there can be outstanding bursts
  wire unused = &{1'b0, ends_ready, ends_valid};
endmodule

`default_nettype wire
