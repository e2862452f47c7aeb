// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The memory of a node, as its core sees it: a read of 16 bytes takes latency_cycles, a write is
// taken in each cycle in which no read is under way. The bytes are the test bench's.
module memory (
    input  logic         clk,
    input  logic         rst,
    input  logic [9:0]   self,
    input  logic [9:0]   latency_cycles,
    input  logic         valid,
    input  logic         is_write,
    input  logic [31:0]  address,
    input  logic [63:0]  wdata,
    input  logic [7:0]   mask,
    output logic         ready,
    output logic         done,
    output logic [127:0] rdata
);
  import "DPI-C" function void memory_read(
      input int node, input int address, output longint low, output longint high);
  import "DPI-C" function void memory_write(
      input int node, input int address, input longint data, input byte mask);

  logic is_busy;
  logic [9:0] left;
  longint low, high;
  assign ready = !is_busy;
  assign done = is_busy && left == 0;

  always_ff @(posedge clk) begin
    if (rst) begin
      is_busy <= 1'b0;
    end else if (valid && ready) begin
      if (is_write) begin
        memory_write(int'(self), int'(address), longint'(wdata), byte'(mask));
      end else begin
        memory_read(int'(self), int'(address), low, high);
        rdata <= {high, low};
        is_busy <= 1'b1;
        left <= latency_cycles - 1'b1;
      end
    end else if (is_busy) begin
      if (done) is_busy <= 1'b0;
      else left <= left - 1'b1;
    end
  end
endmodule
