// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Products in three cycles, quotients and remainders a bit per cycle.
module rv_muldiv (
    input  logic        clk,
    input  logic        rst,
    input  logic        start,    // held until done
    input  logic        kill,
    input  logic [2:0]  funct3,
    input  logic        is_word,
    input  logic [63:0] a,
    input  logic [63:0] b,
    output logic        done,
    output logic [63:0] result
);
  wire is_division = funct3[2];
  wire is_signed_division = !funct3[0];
  wire a_is_signed = is_division ? is_signed_division : funct3[1:0] != 2'd3;
  wire b_is_signed = is_division ? is_signed_division : !funct3[1];
  wire [63:0] a_used = !is_word ? a : {{32{a_is_signed && a[31]}}, a[31:0]};
  wire [63:0] b_used = !is_word ? b : {{32{b_is_signed && b[31]}}, b[31:0]};
  wire a_negative = a_is_signed && a_used[63];
  wire b_negative = b_is_signed && b_used[63];

  logic [6:0] count;
  logic is_busy;
  logic signed [129:0] product, product_kept;
  wire signed [64:0] a_wide = {a_negative, a_used};
  wire signed [64:0] b_wide = {b_negative, b_used};

  logic [63:0] remainder, quotient, divisor;
  wire [64:0] trial = {remainder, quotient[63]} - {1'b0, divisor};
  wire [63:0] quotient_signed = a_negative != b_negative && b_used != 0 ? -quotient : quotient;
  wire [63:0] remainder_signed = a_negative ? -remainder : remainder;

  always_ff @(posedge clk) begin
    product <= a_wide * b_wide;
    product_kept <= product;
    if (rst || kill || done) begin
      is_busy <= 1'b0;
    end else if (start && !is_busy) begin
      is_busy   <= 1'b1;
      count     <= is_division ? 7'd64 : 7'd1;
      remainder <= '0;
      quotient  <= a_negative ? -a_used : a_used;
      divisor   <= b_negative ? -b_used : b_used;
    end else if (is_busy && count != 0) begin
      count     <= count - 1'b1;
      quotient  <= {quotient[62:0], !trial[64]};
      remainder <= trial[64] ? {remainder[62:0], quotient[63]} : trial[63:0];
    end
  end
  assign done = is_busy && count == 0;

  logic [63:0] wide;
  always_comb begin
    if (is_division) wide = funct3[1] ? remainder_signed : quotient_signed;
    else wide = funct3[1:0] == 0 ? product_kept[63:0] : product_kept[127:64];
    result = is_word ? {{32{wide[31]}}, wide[31:0]} : wide;
  end
  wire unused = &{1'b0, product_kept[129:128], 1'b0};
endmodule
