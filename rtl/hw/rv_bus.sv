// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Four ways to memory become one: writes of the store buffer first, then data, page tables and
// instructions. One read is under way at a time.
module rv_bus (
    input  logic         clk,
    input  logic         rst,
    input  logic         write_valid,
    input  logic [31:0]  write_address,
    input  logic [63:0]  write_data,
    input  logic [7:0]   write_mask,
    output logic         write_ready,
    // Reads: 0 data, 1 page tables, 2 instructions.
    input  logic [2:0]   read_valid,
    input  logic [31:0]  data_address,
    input  logic [31:0]  table_address,
    input  logic [31:0]  fetch_address,
    output logic [2:0]   read_ready,
    output logic [2:0]   read_done,
    // Memory.
    output logic         memory_valid,
    output logic         memory_is_write,
    output logic [31:0]  memory_address,
    output logic [63:0]  memory_wdata,
    output logic [7:0]   memory_mask,
    input  logic         memory_ready,
    input  logic         memory_done
);
  logic [2:0] owner;
  wire is_busy = owner != 0;
  wire [2:0] first = read_valid[0] ? 3'b001 : read_valid[1] ? 3'b010 : read_valid[2] ? 3'b100 : 3'b0;
  wire is_read = !write_valid && first != 0 && !is_busy;

  assign memory_valid = !is_busy && (write_valid || is_read);
  assign memory_is_write = write_valid;
  assign memory_address = write_valid ? write_address
      : first[0] ? data_address : first[1] ? {table_address[31:4], 4'b0} : fetch_address;
  assign memory_wdata = write_data;
  assign memory_mask = write_mask;
  assign write_ready = memory_ready && !is_busy;
  assign read_ready = is_read && memory_ready ? first : '0;
  assign read_done = memory_done ? owner : '0;

  always_ff @(posedge clk) begin
    if (rst || memory_done) owner <= '0;
    else if (is_read && memory_ready) owner <= first;
  end
  wire unused = &{1'b0, table_address[3:0], 1'b0};
endmodule
