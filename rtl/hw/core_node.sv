// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A node: core, timer, and its side of the network. Devices of the core, as offsets in the window
// 0x4000_0000: 0x000_0000 packetizer and mailbox (network_node.sv); 0x100_0000 the time in cycles,
// 0x100_0008 when the timer interrupts, 0x100_0010 a word for the host that ends the run,
// 0x100_0018 a character for it.
module core_node (
    input  logic         clk,
    input  logic         rst,
    input  logic [9:0]   self,
    // Packetizer and mailbox.
    output logic         port_valid,
    output logic         port_is_store,
    output logic [23:0]  port_address,
    output logic [63:0]  port_wdata,
    input  logic [63:0]  port_rdata,
    // Host.
    output logic         host_valid,
    output logic         host_is_character,
    output logic [63:0]  host_data,
    // Memory.
    output logic         memory_valid,
    output logic         memory_is_write,
    output logic [31:0]  memory_address,
    output logic [63:0]  memory_wdata,
    output logic [7:0]   memory_mask,
    input  logic         memory_ready,
    input  logic         memory_done,
    input  logic [127:0] memory_rdata
);
  logic access_valid, access_is_store, was_device;
  logic [27:0] access_address;
  logic [63:0] access_wdata, timer, timer_compare, device_rdata;
  wire is_device = access_address[27:24] == 4'd1;
  wire store_device = access_valid && access_is_store && is_device;
  wire [1:0] register_index = access_address[4:3];

  rv_core core (
      .clk, .rst, .hart({54'b0, self}), .timer, .timer_interrupt(timer >= timer_compare),
      .port_valid(access_valid), .port_is_store(access_is_store), .port_address(access_address),
      .port_wdata(access_wdata), .port_rdata(was_device ? device_rdata : port_rdata),
      .memory_valid, .memory_is_write, .memory_address, .memory_wdata, .memory_mask, .memory_ready,
      .memory_done, .memory_rdata
  );
  assign port_valid = access_valid && access_address[27:24] == 0;
  assign port_is_store = access_is_store;
  assign port_address = access_address[23:0];
  assign port_wdata = access_wdata;
  assign host_valid = store_device && register_index[1];
  assign host_is_character = register_index[0];
  assign host_data = access_wdata;

  always_ff @(posedge clk) begin
    was_device <= is_device;
    device_rdata <= register_index[0] ? timer_compare : timer;
    if (rst) begin
      timer <= '0;
      timer_compare <= '1;
    end else begin
      timer <= timer + 1'b1;
      if (store_device && register_index == 2'd1) timer_compare <= access_wdata;
    end
  end
endmodule
