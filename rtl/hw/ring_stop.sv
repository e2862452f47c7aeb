// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A node's stop on the ring: two links out, two in, and two virtual networks, one of messages and
// one of notices. A notice is always taken at its node, so that it never waits for a message.
module ring_stop #(
    parameter int LINK_WIDTH = net::FLIT_BITS + 2  // {is_notice, tail, data}
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic [9:0]                nodes,
    input  logic [9:0]                self,
    // Links, [0] upwards and [1] downwards. Credits: {notices, messages}.
    output logic [1:0]                link_out_valid,
    input  logic [1:0]                link_out_ready,
    output logic [LINK_WIDTH-1:0]     link_out_up,
    output logic [LINK_WIDTH-1:0]     link_out_down,
    output logic [1:0]                link_out_up_credits,
    output logic [1:0]                link_out_down_credits,
    input  logic [1:0]                link_in_valid,
    input  logic [LINK_WIDTH-1:0]     link_in_up,    // moves up: comes from the node below
    input  logic [LINK_WIDTH-1:0]     link_in_down,
    input  logic [1:0]                link_in_up_credits,
    input  logic [1:0]                link_in_down_credits,
    // Messages of this node.
    input  logic                      message_in_valid,
    output logic                      message_in_ready,
    input  logic                      message_in_tail,
    input  logic [net::FLIT_BITS-1:0] message_in_data,
    output logic                      message_out_valid,
    input  logic                      message_out_ready,
    output logic                      message_out_head,
    output logic                      message_out_tail,
    output logic [net::FLIT_BITS-1:0] message_out_data,
    // Notices of this node; one flit each.
    input  logic                      notice_in_valid,
    output logic                      notice_in_ready,
    input  logic [net::FLIT_BITS-1:0] notice_in_data,
    output logic                      notice_out_valid,
    output logic [net::FLIT_BITS-1:0] notice_out_data
);
  localparam int W = net::FLIT_BITS;
  wire [1:0] is_notice = {link_in_down[W+1], link_in_up[W+1]};
  wire [1:0] in_tail = {link_in_down[W], link_in_up[W]};

  logic [1:0] m_credit, n_credit, m_valid, n_valid, m_tail, n_tail, m_ready, n_ready;
  logic [W-1:0] m_up, m_down, n_up, n_down;
  logic n_head, n_last;

  ring_channel #(.SLOTS(12)) messages (
      .clk, .rst, .nodes, .self,
      .in_valid(link_in_valid & ~is_notice), .in_tail, .in_data(link_in_up[W-1:0]),
      .in_data_down(link_in_down[W-1:0]), .in_credit(m_credit),
      .out_valid(m_valid), .out_tail(m_tail), .out_data(m_up), .out_data_down(m_down),
      .out_ready(m_ready), .out_credit({link_in_up_credits[0], link_in_down_credits[0]}),
      .inject_valid(message_in_valid), .inject_ready(message_in_ready),
      .inject_tail(message_in_tail), .inject_data(message_in_data),
      .eject_valid(message_out_valid), .eject_ready(message_out_ready),
      .eject_head(message_out_head), .eject_tail(message_out_tail), .eject_data(message_out_data)
  );
  ring_channel #(.SLOTS(32), .SLOT_FLITS(1)) notices (
      .clk, .rst, .nodes, .self,
      .in_valid(link_in_valid & is_notice), .in_tail, .in_data(link_in_up[W-1:0]),
      .in_data_down(link_in_down[W-1:0]), .in_credit(n_credit),
      .out_valid(n_valid), .out_tail(n_tail), .out_data(n_up), .out_data_down(n_down),
      .out_ready(n_ready), .out_credit({link_in_up_credits[1], link_in_down_credits[1]}),
      .inject_valid(notice_in_valid), .inject_ready(notice_in_ready), .inject_tail(1'b1),
      .inject_data(notice_in_data),
      .eject_valid(notice_out_valid), .eject_ready(1'b1), .eject_head(n_head),
      .eject_tail(n_last), .eject_data(notice_out_data)
  );

  // A notice goes before a message, between its flits too. The flit is registered here.
  wire [1:0] free = ~link_out_valid | link_out_ready;
  assign n_ready = free;
  assign m_ready = free & ~n_valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      link_out_valid <= '0;
    end else begin
      link_out_valid <= (link_out_valid & ~link_out_ready) | n_valid | m_valid;
    end
    if (free[0])
      link_out_up <= n_valid[0] ? {1'b1, n_tail[0], n_up} : {1'b0, m_tail[0], m_up};
    if (free[1])
      link_out_down <= n_valid[1] ? {1'b1, n_tail[1], n_down} : {1'b0, m_tail[1], m_down};
  end

  // Slots that flits from below have left are told downwards, and the other way round.
  always_ff @(posedge clk) begin
    link_out_down_credits <= rst ? '0 : {n_credit[0], m_credit[0]};
    link_out_up_credits   <= rst ? '0 : {n_credit[1], m_credit[1]};
  end
  wire unused = &{1'b0, n_head, n_last, 1'b0};
endmodule
