// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A ring stop's share of one virtual network. Packets move as a whole from slot to slot: one may go
// on when the next stop has a slot for it, and one may enter the ring only when that leaves another
// slot free. So a direction of the ring never fills up, and never stops.
module ring_channel #(
    parameter int SLOTS = 16,
    parameter int SLOT_FLITS = net::PACKET_FLITS_MAX
) (
    input  logic                      clk,
    input  logic                      rst,
    input  logic [9:0]                nodes,
    input  logic [9:0]                self,
    // From the neighbours: [0] moves up, [1] moves down. Credits go back to them.
    input  logic [1:0]                in_valid,
    input  logic [1:0]                in_tail,
    input  logic [net::FLIT_BITS-1:0] in_data,
    input  logic [net::FLIT_BITS-1:0] in_data_down,
    output logic [1:0]                in_credit,
    // To the neighbours.
    output logic [1:0]                out_valid,
    output logic [1:0]                out_tail,
    output logic [net::FLIT_BITS-1:0] out_data,
    output logic [net::FLIT_BITS-1:0] out_data_down,
    input  logic [1:0]                out_ready,
    input  logic [1:0]                out_credit,
    // From and to this node.
    input  logic                      inject_valid,
    output logic                      inject_ready,
    input  logic                      inject_tail,
    input  logic [net::FLIT_BITS-1:0] inject_data,
    output logic                      eject_valid,
    input  logic                      eject_ready,
    output logic                      eject_head,
    output logic                      eject_tail,
    output logic [net::FLIT_BITS-1:0] eject_data
);
  localparam int W = net::FLIT_BITS;
  localparam int DEPTH = 1 << $clog2(SLOTS * SLOT_FLITS);
  localparam int CREDIT_BITS = $clog2(SLOTS + 1);

  // Streams: 0 moves up, 1 moves down, 2 is injected here.
  logic [2:0] valid, ready, tail, is_head, to_self, to_up, to_down;
  logic [3*W-1:0] data;
  logic [1:0] has_space;

  fifo #(.WIDTH(W + 1), .DEPTH(DEPTH)) up_queue (
      .clk, .rst, .in_valid(in_valid[0]), .in_ready(has_space[0]), .in_data({in_tail[0], in_data}),
      .out_valid(valid[0]), .out_ready(ready[0]), .out_data({tail[0], data[0+:W]})
  );
  fifo #(.WIDTH(W + 1), .DEPTH(DEPTH)) down_queue (
      .clk, .rst, .in_valid(in_valid[1]), .in_ready(has_space[1]),
      .in_data({in_tail[1], in_data_down}),
      .out_valid(valid[1]), .out_ready(ready[1]), .out_data({tail[1], data[W+:W]})
  );
  assign valid[2] = inject_valid;
  assign tail[2] = inject_tail;
  assign data[2*W+:W] = inject_data;
  assign inject_ready = ready[2];

  ring_route #(.GOES_UP(1)) up_route (
      .clk, .rst, .nodes, .self, .valid(valid[0]), .ready(ready[0]), .tail(tail[0]),
      .header(data[0+:W]), .is_head(is_head[0]), .to_self(to_self[0]), .to_up(to_up[0]),
      .to_down(to_down[0])
  );
  ring_route #(.GOES_UP(0)) down_route (
      .clk, .rst, .nodes, .self, .valid(valid[1]), .ready(ready[1]), .tail(tail[1]),
      .header(data[W+:W]), .is_head(is_head[1]), .to_self(to_self[1]), .to_up(to_up[1]),
      .to_down(to_down[1])
  );
  ring_route #(.IS_INJECTION(1)) inject_route (
      .clk, .rst, .nodes, .self, .valid(valid[2]), .ready(ready[2]), .tail(tail[2]),
      .header(data[2*W+:W]), .is_head(is_head[2]), .to_self(to_self[2]), .to_up(to_up[2]),
      .to_down(to_down[2])
  );

  // Slots known to be free at the next stops.
  logic [CREDIT_BITS-1:0] credits_up, credits_down;
  logic [1:0] out_head;
  wire [1:0] taken = out_valid & out_ready & out_head;
  localparam logic [CREDIT_BITS-1:0] ALL = SLOTS[CREDIT_BITS-1:0];
  localparam logic [CREDIT_BITS-1:0] ONE = {{(CREDIT_BITS - 1){1'b0}}, 1'b1};

  always_ff @(posedge clk) begin
    if (rst) begin
      credits_up   <= ALL;
      credits_down <= ALL;
    end else begin
      credits_up <= credits_up + (out_credit[0] ? ONE : '0) - (taken[0] ? ONE : '0);
      credits_down <= credits_down + (out_credit[1] ? ONE : '0) - (taken[1] ? ONE : '0);
      assert (credits_up <= ALL && credits_down <= ALL);
      assert (!(in_valid[0] && !has_space[0]) && !(in_valid[1] && !has_space[1]));
      assert (!(valid[0] && to_down[0]) && !(valid[1] && to_up[1]));
    end
  end

  logic [1:0] up_ready, down_ready;
  logic [2:0] self_ready;
  packet_mux #(.INPUTS(2)) up_mux (
      .clk, .rst,
      .in_valid({valid[2] && to_up[2], valid[0] && to_up[0]}),
      .in_permitted({credits_up > ONE, credits_up != '0}),
      .in_tail({tail[2], tail[0]}), .in_data({data[2*W+:W], data[0+:W]}), .in_ready(up_ready),
      .out_valid(out_valid[0]), .out_head(out_head[0]), .out_tail(out_tail[0]),
      .out_data(out_data), .out_ready(out_ready[0])
  );
  packet_mux #(.INPUTS(2)) down_mux (
      .clk, .rst,
      .in_valid({valid[2] && to_down[2], valid[1] && to_down[1]}),
      .in_permitted({credits_down > ONE, credits_down != '0}),
      .in_tail({tail[2], tail[1]}), .in_data({data[2*W+:W], data[W+:W]}), .in_ready(down_ready),
      .out_valid(out_valid[1]), .out_head(out_head[1]), .out_tail(out_tail[1]),
      .out_data(out_data_down), .out_ready(out_ready[1])
  );
  packet_mux #(.INPUTS(3)) self_mux (
      .clk, .rst, .in_valid(valid & to_self), .in_permitted(3'b111), .in_tail(tail),
      .in_data(data), .in_ready(self_ready), .out_valid(eject_valid), .out_head(eject_head),
      .out_tail(eject_tail), .out_data(eject_data), .out_ready(eject_ready)
  );
  assign ready[0] = up_ready[0] || self_ready[0];
  assign ready[1] = down_ready[0] || self_ready[1];
  assign ready[2] = up_ready[1] || down_ready[1] || self_ready[2];
  assign in_credit = valid[1:0] & ready[1:0] & tail[1:0];
  wire unused = &{1'b0, is_head, to_down[0], to_up[1], 1'b0};
endmodule
