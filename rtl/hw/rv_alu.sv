// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

module rv_alu (
    input  logic [3:0]  op,
    input  logic        is_word,
    input  logic [63:0] a,
    input  logic [63:0] b,
    output logic [63:0] result
);
  wire [5:0] shift = is_word ? {1'b0, b[4:0]} : b[5:0];
  wire [63:0] low = is_word ? {{32{op == rv::ALU_SRA && a[31]}}, a[31:0]} : a;
  logic [63:0] wide;
  always_comb begin
    case (op)
      rv::ALU_SUB:  wide = a - b;
      rv::ALU_SLL:  wide = a << shift;
      rv::ALU_SLT:  wide = {63'b0, $signed(a) < $signed(b)};
      rv::ALU_SLTU: wide = {63'b0, a < b};
      rv::ALU_XOR:  wide = a ^ b;
      rv::ALU_SRL:  wide = low >> shift;
      rv::ALU_SRA:  wide = $unsigned($signed(low) >>> shift);
      rv::ALU_OR:   wide = a | b;
      rv::ALU_AND:  wide = a & b;
      default:      wide = a + b;
    endcase
    result = is_word ? {{32{wide[31]}}, wide[31:0]} : wide;
  end
endmodule
