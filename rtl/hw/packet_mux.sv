// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Joins streams of packets: one packet at a time, in turn. A packet may begin when it is permitted;
// once it has begun, nothing comes between its flits.
module packet_mux #(
    parameter int INPUTS = 3
) (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [INPUTS-1:0]                  in_valid,
    input  logic [INPUTS-1:0]                  in_permitted,
    input  logic [INPUTS-1:0]                  in_tail,
    input  logic [INPUTS*net::FLIT_BITS-1:0]   in_data,
    output logic [INPUTS-1:0]                  in_ready,
    output logic                               out_valid,
    output logic                               out_head,
    output logic                               out_tail,
    output logic [net::FLIT_BITS-1:0]          out_data,
    input  logic                               out_ready
);
  logic              is_locked;
  logic [INPUTS-1:0] owner;  // of the packet under way, or the last one; one hot
  logic [INPUTS-1:0] wanting, chosen;

  assign wanting = in_valid & in_permitted;

  // The first that wants after the last owner, around the circle.
  always_comb begin
    chosen = '0;
    if (is_locked) begin
      chosen = owner & in_valid;
    end else begin
      for (int pass = 0; pass < 2; pass++) begin
        for (int i = 0; i < INPUTS; i++) begin
          if (chosen == '0 && wanting[i] && (pass == 1 || (owner < (INPUTS'(1) << i))))
            chosen[i] = 1'b1;
        end
      end
    end
  end

  always_comb begin
    out_data = '0;
    for (int i = 0; i < INPUTS; i++) begin
      if (chosen[i]) out_data |= in_data[i*net::FLIT_BITS+:net::FLIT_BITS];
    end
  end

  assign out_valid = chosen != '0;
  assign out_tail  = (chosen & in_tail) != '0;
  assign out_head  = !is_locked;
  assign in_ready  = out_ready ? chosen : '0;

  always_ff @(posedge clk) begin
    if (rst) begin
      is_locked <= 1'b0;
      owner     <= '0;
    end else if (out_valid && out_ready) begin
      is_locked <= !out_tail;
      owner     <= chosen;
    end
  end
endmodule
