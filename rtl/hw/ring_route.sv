// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Where the packet at the head of a stream goes: onwards up, onwards down, or to this node. The way
// of a header holds until its packet's last flit.
module ring_route #(
    parameter bit IS_INJECTION = 0,  // chooses the shorter way; a packet on the ring keeps its own
    parameter bit GOES_UP = 0
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [9:0]   nodes,
    input  logic [9:0]   self,
    input  logic         valid,
    input  logic         ready,
    input  logic         tail,
    input  net::header_t header,
    output logic         is_head,
    output logic         to_self,
    output logic         to_up,
    output logic         to_down
);
  logic [2:0] way, kept_way;
  wire [9:0] upwards = header.node >= self ? header.node - self : header.node + nodes - self;
  wire is_up = IS_INJECTION ? {upwards, 1'b0} <= {1'b0, nodes} : GOES_UP;

  always_comb begin
    if (!is_head) way = kept_way;
    else if (header.node == self) way = 3'b100;
    else way = is_up ? 3'b010 : 3'b001;
  end
  assign {to_self, to_up, to_down} = way;

  always_ff @(posedge clk) begin
    if (rst) begin
      is_head  <= 1'b1;
      kept_way <= '0;
    end else if (valid && ready) begin
      is_head  <= tail;
      kept_way <= way;
    end
  end
  wire unused = &{1'b0, header, 1'b0};
endmodule
