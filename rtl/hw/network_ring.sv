// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The nodes of a cluster without their cores, and the links between neighbours.
module network_ring #(
    parameter int NODES = 2,
    parameter int CONTEXTS = 64,
    parameter int SLOTS = 4,
    parameter int DEPTH = 64
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [9:0]          bits_per_cycle,
    input  logic [8:0]          latency_cycles,
    input  logic [NODES-1:0]    port_valid,
    input  logic [NODES-1:0]    port_is_store,
    input  logic [NODES*24-1:0] port_address,
    input  logic [NODES*64-1:0] port_wdata,
    output logic [NODES*64-1:0] port_rdata,
    output logic [NODES*8-1:0]  probes
);
  localparam int W = net::FLIT_BITS + 2;
  logic [NODES-1:0][1:0] out_valid, out_ready, in_valid;
  logic [NODES-1:0][W-1:0] out_up, out_down, in_up, in_down;
  logic [NODES-1:0][1:0] out_up_credits, out_down_credits, in_up_credits, in_down_credits;

  for (genvar i = 0; i < NODES; i++) begin : nodes
    localparam int ABOVE = (i + 1) % NODES;
    localparam int BELOW = (i + NODES - 1) % NODES;
    network_node #(.CONTEXTS(CONTEXTS), .SLOTS(SLOTS), .DEPTH(DEPTH)) node (
        .clk, .rst, .nodes(NODES[9:0]), .self(i[9:0]), .port_valid(port_valid[i]),
        .port_is_store(port_is_store[i]), .port_address(port_address[i*24+:24]),
        .port_wdata(port_wdata[i*64+:64]), .port_rdata(port_rdata[i*64+:64]),
        .link_out_valid(out_valid[i]), .link_out_ready(out_ready[i]), .link_out_up(out_up[i]),
        .link_out_down(out_down[i]), .link_out_up_credits(out_up_credits[i]),
        .link_out_down_credits(out_down_credits[i]), .link_in_valid(in_valid[i]),
        .link_in_up(in_up[i]), .link_in_down(in_down[i]), .link_in_up_credits(in_up_credits[i]),
        .link_in_down_credits(in_down_credits[i]), .probes(probes[i*8+:8])
    );
    link #(.WIDTH(W)) upwards (
        .clk, .rst, .bits_per_cycle, .latency_cycles, .in_valid(out_valid[i][0]),
        .in_ready(out_ready[i][0]), .in_data(out_up[i]), .in_credits(out_up_credits[i]),
        .out_valid(in_valid[ABOVE][0]), .out_data(in_up[ABOVE]),
        .out_credits(in_up_credits[ABOVE])
    );
    link #(.WIDTH(W)) downwards (
        .clk, .rst, .bits_per_cycle, .latency_cycles, .in_valid(out_valid[i][1]),
        .in_ready(out_ready[i][1]), .in_data(out_down[i]), .in_credits(out_down_credits[i]),
        .out_valid(in_valid[BELOW][1]), .out_data(in_down[BELOW]),
        .out_credits(in_down_credits[BELOW])
    );
  end
endmodule
