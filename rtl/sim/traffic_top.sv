// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A cluster whose cores are the test bench: loads and stores of each node are ports.
module traffic_top #(
    parameter int NODES = 4,
    parameter int CONTEXTS = 4,
    parameter int SLOTS = 4,
    parameter int DEPTH = 4
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [9:0]  bits_per_cycle,
    input  logic [8:0]  latency_cycles,
    input  logic        port_valid[NODES],
    input  logic        port_is_store[NODES],
    input  logic [23:0] port_address[NODES],
    input  logic [63:0] port_wdata[NODES],
    output logic [63:0] port_rdata[NODES],
    output logic [7:0]  probes[NODES]
);
  logic [NODES-1:0] valid, is_store;
  logic [NODES*24-1:0] address;
  logic [NODES*64-1:0] wdata, rdata;
  logic [NODES*8-1:0] all_probes;
  for (genvar i = 0; i < NODES; i++) begin : ports
    assign valid[i] = port_valid[i];
    assign is_store[i] = port_is_store[i];
    assign address[i*24+:24] = port_address[i];
    assign wdata[i*64+:64] = port_wdata[i];
    assign port_rdata[i] = rdata[i*64+:64];
    assign probes[i] = all_probes[i*8+:8];
  end
  network_ring #(.NODES(NODES), .CONTEXTS(CONTEXTS), .SLOTS(SLOTS), .DEPTH(DEPTH)) ring (
      .clk, .rst, .bits_per_cycle, .latency_cycles, .port_valid(valid), .port_is_store(is_store),
      .port_address(address), .port_wdata(wdata), .port_rdata(rdata), .probes(all_probes)
  );
endmodule
