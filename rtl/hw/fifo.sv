// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A queue in distributed memory; what is written in a cycle can be read in the next.
module fifo #(
    parameter int WIDTH = 8,
    parameter int DEPTH = 16
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             in_valid,
    output logic             in_ready,
    input  logic [WIDTH-1:0] in_data,
    output logic             out_valid,
    input  logic             out_ready,
    output logic [WIDTH-1:0] out_data
);
  localparam int BITS = $clog2(DEPTH);
  logic [WIDTH-1:0] memory[DEPTH];
  logic [BITS-1:0] read_at, write_at;
  logic [BITS:0] count;

  assign in_ready  = count != DEPTH[BITS:0];
  assign out_valid = count != 0;
  assign out_data  = memory[read_at];

  wire push = in_valid && in_ready;
  wire pop = out_valid && out_ready;

  always_ff @(posedge clk) begin
    if (push) memory[write_at] <= in_data;
    if (rst) begin
      read_at  <= '0;
      write_at <= '0;
      count    <= '0;
    end else begin
      if (push) write_at <= write_at + 1'b1;
      if (pop) read_at <= read_at + 1'b1;
      count <= count + {{BITS{1'b0}}, push} - {{BITS{1'b0}}, pop};
      assert (count <= DEPTH[BITS:0]);
    end
  end
endmodule
