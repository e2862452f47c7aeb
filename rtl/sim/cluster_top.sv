// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A cluster of nodes with cores and memories.
module cluster_top #(
    parameter int NODES = 2,
    parameter int CONTEXTS = 64,
    parameter int SLOTS = 4,
    parameter int DEPTH = 64
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [9:0]  bits_per_cycle,
    input  logic [8:0]  latency_cycles,
    input  logic [9:0]  memory_latency_cycles,
    output logic        host_valid[NODES],
    output logic        host_is_character[NODES],
    output logic [63:0] host_data[NODES],
    output logic [7:0]  probes[NODES]
);
  logic [NODES-1:0] valid, is_store;
  logic [NODES*24-1:0] address;
  logic [NODES*64-1:0] wdata, rdata;
  logic [NODES*8-1:0] all_probes;
  network_ring #(.NODES(NODES), .CONTEXTS(CONTEXTS), .SLOTS(SLOTS), .DEPTH(DEPTH)) ring (
      .clk, .rst, .bits_per_cycle, .latency_cycles, .port_valid(valid), .port_is_store(is_store),
      .port_address(address), .port_wdata(wdata), .port_rdata(rdata), .probes(all_probes)
  );
  for (genvar i = 0; i < NODES; i++) begin : nodes
    logic memory_valid, memory_is_write, memory_ready, memory_done;
    logic [31:0] memory_address;
    logic [63:0] memory_wdata;
    logic [7:0] memory_mask;
    logic [127:0] memory_rdata;
    assign probes[i] = all_probes[i*8+:8];
    core_node node (
        .clk, .rst, .self(i[9:0]), .port_valid(valid[i]), .port_is_store(is_store[i]),
        .port_address(address[i*24+:24]), .port_wdata(wdata[i*64+:64]),
        .port_rdata(rdata[i*64+:64]), .host_valid(host_valid[i]),
        .host_is_character(host_is_character[i]), .host_data(host_data[i]), .memory_valid,
        .memory_is_write, .memory_address, .memory_wdata, .memory_mask, .memory_ready,
        .memory_done, .memory_rdata
    );
    memory memory (
        .clk, .rst, .self(i[9:0]), .latency_cycles(memory_latency_cycles), .valid(memory_valid),
        .is_write(memory_is_write), .address(memory_address), .wdata(memory_wdata),
        .mask(memory_mask), .ready(memory_ready), .done(memory_done), .rdata(memory_rdata)
    );
  end
endmodule
