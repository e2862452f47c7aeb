// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Packetizer, mailbox and ring stop of a node behind one port of loads and stores. An access is
// taken in every cycle; data of a load come a cycle later. Addresses (bits 23:0):
//
//   0x000000 + context * 0x1000    a context, a page for its process:
//     0x000 - 0x038  store  a word of the next packet's payload
//     0x040          store  descriptor {size_bytes at 38:32, context at 23:16, node at 9:0}: sends it
//     0x048          load   counters {refused, full, settled, sent}, 16 bits each
//     0x080          load   POLL: the first packet {domain, -, sequence, 1, node, context, -, size}, or 0
//     0x088          load   DATA: the next word of the first packet
//   0x800000                       for the supervisor alone:
//     0x000          store  {domain at 47:32, drops at 17, open at 16, context at 15:0}
//     0x008          load   {nodes at 41:32, this node at 9:0}
module network_node #(
    parameter int CONTEXTS = 64,
    parameter int SLOTS = 4,
    parameter int DEPTH = 64,
    parameter int LINK_WIDTH = net::FLIT_BITS + 2
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [9:0]            nodes,
    input  logic [9:0]            self,
    // Loads and stores.
    input  logic                  port_valid,
    input  logic                  port_is_store,
    input  logic [23:0]           port_address,
    input  logic [63:0]           port_wdata,
    output logic [63:0]           port_rdata,
    // Links.
    output logic [1:0]            link_out_valid,
    input  logic [1:0]            link_out_ready,
    output logic [LINK_WIDTH-1:0] link_out_up,
    output logic [LINK_WIDTH-1:0] link_out_down,
    output logic [1:0]            link_out_up_credits,
    output logic [1:0]            link_out_down_credits,
    input  logic [1:0]            link_in_valid,
    input  logic [LINK_WIDTH-1:0] link_in_up,
    input  logic [LINK_WIDTH-1:0] link_in_down,
    input  logic [1:0]            link_in_up_credits,
    input  logic [1:0]            link_in_down_credits,
    // Signals that a logic analyser would be connected to.
    output logic [7:0]            probes
);
  localparam int CONTEXT_BITS = $clog2(CONTEXTS);
  wire is_control = port_address[23];
  wire [10:0] page = port_address[22:12];
  wire [8:0] word = port_address[11:3];
  wire [CONTEXT_BITS-1:0] context_number = page[CONTEXT_BITS-1:0];
  wire is_context = port_valid && !is_control && page < 11'(CONTEXTS);
  wire store_word = is_context && port_is_store && word < 9'd8;
  wire store_descriptor = is_context && port_is_store && word == 9'd8;
  wire load_poll = is_context && !port_is_store && word == 9'h10;
  wire load_data = is_context && !port_is_store && word == 9'h11;
  wire set_valid = port_valid && is_control && port_is_store && word == 0 && page == 0;
  wire [CONTEXT_BITS-1:0] set_context = port_wdata[CONTEXT_BITS-1:0];

  logic [1:0] answer;
  always_ff @(posedge clk) begin
    if (is_control) answer <= word == 9'd1 ? 2'd1 : 2'd0;
    else answer <= word == 9'd9 ? 2'd2 : 2'd3;
  end
  logic [63:0] counters, loaded;
  assign port_rdata = answer == 2'd1 ? {22'b0, nodes, 22'b0, self}
      : answer == 2'd2 ? counters : answer == 2'd3 ? loaded : '0;

  logic packet_valid, packet_ready, packet_head, packet_tail;
  logic [net::FLIT_BITS-1:0] packet_data;
  logic notice_valid, notice_ready, settled_valid, poll_hit, last_word;
  logic [net::FLIT_BITS-1:0] notice_data, settled_data;
  logic arrived_valid, arrived_ready, arrived_head, arrived_tail;
  logic [net::FLIT_BITS-1:0] arrived_data;

  packetizer #(.CONTEXTS(CONTEXTS), .SLOTS(SLOTS)) packetizer (
      .clk, .rst, .self, .store_word, .store_descriptor,
      .store_context(set_valid ? set_context : context_number), .store_index(word[2:0]),
      .store_data(port_wdata), .counters, .open_valid(set_valid), .open_domain(port_wdata[47:32]),
      .out_valid(packet_valid), .out_ready(packet_ready), .out_head(packet_head),
      .out_tail(packet_tail), .out_data(packet_data), .notice_valid(settled_valid),
      .notice_data(settled_data)
  );
  mailbox #(.CONTEXTS(CONTEXTS), .DEPTH(DEPTH)) mailbox (
      .clk, .rst, .self, .load_poll, .load_data, .load_context(context_number), .loaded, .poll_hit,
      .last_word, .set_valid, .set_context, .set_open(port_wdata[16]), .set_drops(port_wdata[17]),
      .set_domain(port_wdata[47:32]), .in_valid(arrived_valid), .in_ready(arrived_ready),
      .in_head(arrived_head), .in_tail(arrived_tail), .in_data(arrived_data), .notice_valid,
      .notice_ready, .notice_data
  );
  ring_stop ring_stop (
      .clk, .rst, .nodes, .self, .link_out_valid, .link_out_ready, .link_out_up, .link_out_down,
      .link_out_up_credits, .link_out_down_credits, .link_in_valid, .link_in_up, .link_in_down,
      .link_in_up_credits, .link_in_down_credits, .message_in_valid(packet_valid),
      .message_in_ready(packet_ready), .message_in_tail(packet_tail),
      .message_in_data(packet_data), .message_out_valid(arrived_valid),
      .message_out_ready(arrived_ready), .message_out_head(arrived_head),
      .message_out_tail(arrived_tail), .message_out_data(arrived_data),
      .notice_in_valid(notice_valid), .notice_in_ready(notice_ready), .notice_in_data(notice_data),
      .notice_out_valid(settled_valid), .notice_out_data(settled_data)
  );

  // A header or notice "arrives" when its flit is there on the link's side of the ring stop.
  logic [1:0] mid_packet;
  wire [1:0] in_is_notice = {link_in_down[LINK_WIDTH-1], link_in_up[LINK_WIDTH-1]};
  wire [1:0] in_tail = {link_in_down[LINK_WIDTH-2], link_in_up[LINK_WIDTH-2]};
  wire [1:0] message_flit = link_in_valid & ~in_is_notice;
  always_ff @(posedge clk) begin
    if (rst) mid_packet <= '0;
    else mid_packet <= (mid_packet & ~message_flit) | (message_flit & ~in_tail);
  end
  assign probes = {
    last_word,                                   // 7: the last word of a message is loaded
    poll_hit,                                    // 6: the poll of the cycle before saw a message
    load_poll,                                   // 5: a poll
    (message_flit & ~mid_packet) != 0,           // 4: a header arrives
    (link_in_valid & in_is_notice) != 0,         // 3: a notice arrives
    packet_valid && packet_head,                 // 2: a header is on the network
    store_descriptor,                            // 1: a descriptor is written
    store_word                                   // 0: a word is written
  };
  wire unused = &{1'b0, port_address[2:0], 1'b0};
endmodule
