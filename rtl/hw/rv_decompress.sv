// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// An instruction of 16 bits as the one of 32 bits that it stands for. 0 is illegal.
module rv_decompress (
    input  logic [15:0] c,
    output logic [31:0] expanded
);
  wire [4:0] rd = c[11:7];
  wire [4:0] rs2 = c[6:2];
  wire [4:0] rd_p = {2'b01, c[4:2]};   // the registers x8 to x15
  wire [4:0] rs1_p = {2'b01, c[9:7]};
  wire [11:0] imm6 = {{7{c[12]}}, c[6:2]};
  wire [11:0] offset_w = {5'b0, c[5], c[12:10], c[6], 2'b0};
  wire [11:0] offset_d = {4'b0, c[6:5], c[12:10], 3'b0};
  wire [20:0] jump = {{10{c[12]}}, c[8], c[10:9], c[6], c[7], c[2], c[11], c[5:3], 1'b0};
  wire [12:0] branch = {{5{c[12]}}, c[6:5], c[2], c[11:10], c[4:3], 1'b0};
  localparam logic [6:0] OP = 7'h33, OP_W = 7'h3B, OP_IMM = 7'h13, OP_IMM_W = 7'h1B;
  localparam logic [6:0] LOAD = 7'h03, STORE = 7'h23, BRANCH = 7'h63, JALR = 7'h67;

  logic [31:0] arithmetic;
  always_comb begin
    case (c[11:10])
      2'b00: arithmetic = {6'b000000, c[12], c[6:2], rs1_p, 3'd5, rs1_p, OP_IMM};
      2'b01: arithmetic = {6'b010000, c[12], c[6:2], rs1_p, 3'd5, rs1_p, OP_IMM};
      2'b10: arithmetic = {imm6, rs1_p, 3'd7, rs1_p, OP_IMM};
      default:
        case ({c[12], c[6:5]})
          3'b000: arithmetic = {7'h20, rd_p, rs1_p, 3'd0, rs1_p, OP};
          3'b001: arithmetic = {7'h00, rd_p, rs1_p, 3'd4, rs1_p, OP};
          3'b010: arithmetic = {7'h00, rd_p, rs1_p, 3'd6, rs1_p, OP};
          3'b011: arithmetic = {7'h00, rd_p, rs1_p, 3'd7, rs1_p, OP};
          3'b100: arithmetic = {7'h20, rd_p, rs1_p, 3'd0, rs1_p, OP_W};
          3'b101: arithmetic = {7'h00, rd_p, rs1_p, 3'd0, rs1_p, OP_W};
          default: arithmetic = '0;
        endcase
    endcase
  end

  logic [31:0] moves;
  always_comb begin
    if (!c[12]) begin
      if (rs2 == 0) moves = rd == 0 ? '0 : {12'b0, rd, 3'd0, 5'd0, JALR};
      else moves = {7'b0, rs2, 5'd0, 3'd0, rd, OP};
    end else if (rs2 == 0) begin
      moves = rd == 0 ? 32'h0010_0073 : {12'b0, rd, 3'd0, 5'd1, JALR};
    end else begin
      moves = {7'b0, rs2, rd, 3'd0, rd, OP};
    end
  end

  wire [11:0] stack_16 = {{3{c[12]}}, c[4:3], c[5], c[2], c[6], 4'b0};
  always_comb begin
    case ({c[1:0], c[15:13]})
      5'b00_000: expanded = c[12:5] == 0 ? '0
          : {2'b0, c[10:7], c[12:11], c[5], c[6], 2'b0, 5'd2, 3'd0, rd_p, OP_IMM};
      5'b00_010: expanded = {offset_w, rs1_p, 3'd2, rd_p, LOAD};
      5'b00_011: expanded = {offset_d, rs1_p, 3'd3, rd_p, LOAD};
      5'b00_110: expanded = {offset_w[11:5], rd_p, rs1_p, 3'd2, offset_w[4:0], STORE};
      5'b00_111: expanded = {offset_d[11:5], rd_p, rs1_p, 3'd3, offset_d[4:0], STORE};
      5'b01_000: expanded = {imm6, rd, 3'd0, rd, OP_IMM};
      5'b01_001: expanded = rd == 0 ? '0 : {imm6, rd, 3'd0, rd, OP_IMM_W};
      5'b01_010: expanded = {imm6, 5'd0, 3'd0, rd, OP_IMM};
      5'b01_011: expanded = {c[12], c[6:2]} == 0 ? '0
          : rd == 5'd2 ? {stack_16, 5'd2, 3'd0, 5'd2, OP_IMM}
          : {{15{c[12]}}, c[6:2], rd, 7'h37};
      5'b01_100: expanded = arithmetic;
      5'b01_101: expanded = {jump[20], jump[10:1], jump[11], jump[19:12], 5'd0, 7'h6F};
      5'b01_110: expanded = {branch[12], branch[10:5], 5'd0, rs1_p, 3'd0, branch[4:1], branch[11],
                             BRANCH};
      5'b01_111: expanded = {branch[12], branch[10:5], 5'd0, rs1_p, 3'd1, branch[4:1], branch[11],
                             BRANCH};
      5'b10_000: expanded = {6'b0, c[12], c[6:2], rd, 3'd1, rd, OP_IMM};
      5'b10_010: expanded = rd == 0 ? '0
          : {4'b0, c[3:2], c[12], c[6:4], 2'b0, 5'd2, 3'd2, rd, LOAD};
      5'b10_011: expanded = rd == 0 ? '0
          : {3'b0, c[4:2], c[12], c[6:5], 3'b0, 5'd2, 3'd3, rd, LOAD};
      5'b10_100: expanded = moves;
      5'b10_110: expanded = {4'b0, c[8:7], c[12], rs2, 5'd2, 3'd2, c[11:9], 2'b0, STORE};
      5'b10_111: expanded = {3'b0, c[9:7], c[12], rs2, 5'd2, 3'd3, c[11:10], 3'b0, STORE};
      default: expanded = '0;
    endcase
  end
  wire unused = &{1'b0, jump[0], branch[0], 1'b0};
endmodule
