// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// RV64IMA with the privileged instructions of M, S and U.
module rv_decode (
    input  logic [31:0]  i,
    output rv::decoded_t d,
    output logic [63:0]  immediate
);
  wire [6:0] opcode = i[6:0];
  wire [2:0] funct3 = i[14:12];
  wire [6:0] funct7 = i[31:25];
  wire [63:0] imm_i = {{52{i[31]}}, i[31:20]};
  wire [63:0] imm_s = {{52{i[31]}}, i[31:25], i[11:7]};
  wire [63:0] imm_b = {{52{i[31]}}, i[7], i[30:25], i[11:8], 1'b0};
  wire [63:0] imm_u = {{32{i[31]}}, i[31:12], 12'b0};
  wire [63:0] imm_j = {{44{i[31]}}, i[19:12], i[20], i[30:21], 1'b0};
  wire [4:0] amo = i[31:27];
  wire is_shift = funct3[1:0] == 2'b01;

  always_comb begin
    d = '0;
    d.rd = i[11:7];
    d.rs1 = i[19:15];
    d.rs2 = i[24:20];
    d.funct3 = funct3;
    d.csr = i[31:20];
    d.amo = amo;
    d.b_is_immediate = 1'b1;
    immediate = imm_i;
    case (opcode)
      7'h37: begin  // lui
        d.writes_rd = 1'b1;
        d.a_is_zero = 1'b1;
        immediate = imm_u;
      end
      7'h17: begin  // auipc
        d.writes_rd = 1'b1;
        d.a_is_pc = 1'b1;
        immediate = imm_u;
      end
      7'h6F: begin  // jal
        d.writes_rd = 1'b1;
        d.is_jump = 1'b1;
        immediate = imm_j;
      end
      7'h67: begin  // jalr
        d.writes_rd = 1'b1;
        d.uses_rs1 = 1'b1;
        d.is_jump = 1'b1;
        d.is_jalr = 1'b1;
        d.illegal = funct3 != 0;
      end
      7'h63: begin  // branches
        d.uses_rs1 = 1'b1;
        d.uses_rs2 = 1'b1;
        d.is_branch = 1'b1;
        d.illegal = funct3[2:1] == 2'b01;
        immediate = imm_b;
      end
      7'h03: begin  // loads
        d.writes_rd = 1'b1;
        d.uses_rs1 = 1'b1;
        d.is_load = 1'b1;
        d.illegal = funct3 == 3'd7;
      end
      7'h23: begin  // stores
        d.uses_rs1 = 1'b1;
        d.uses_rs2 = 1'b1;
        d.is_store = 1'b1;
        d.illegal = funct3[2];
        immediate = imm_s;
      end
      7'h13, 7'h1B: begin  // with an immediate; of 32 bits
        d.writes_rd = 1'b1;
        d.uses_rs1 = 1'b1;
        d.is_word = opcode[3];
        d.alu = {is_shift && i[30], funct3};
        if (is_shift) d.illegal = (i[31:26] & ~6'h10) != 0 || (funct3 == 3'd1 && i[30])
            || (opcode[3] && i[25]);
        else if (opcode[3]) d.illegal = funct3 != 0;
      end
      7'h33, 7'h3B: begin  // of registers; of 32 bits
        d.writes_rd = 1'b1;
        d.uses_rs1 = 1'b1;
        d.uses_rs2 = 1'b1;
        d.b_is_immediate = 1'b0;
        d.is_word = opcode[3];
        if (funct7 == 7'h01) begin
          d.is_muldiv = 1'b1;
          d.illegal = opcode[3] && (funct3 == 3'd1 || funct3 == 3'd2 || funct3 == 3'd3);
        end else begin
          d.alu = {i[30], funct3};
          d.illegal = (funct7 & ~7'h20) != 0 || (i[30] && funct3 != 0 && funct3 != 3'd5)
              || (opcode[3] && funct3 != 0 && !is_shift);
        end
      end
      7'h2F: begin  // atomics
        d.writes_rd = 1'b1;
        d.uses_rs1 = 1'b1;
        d.uses_rs2 = 1'b1;
        d.is_atomic = 1'b1;
        immediate = '0;
        d.illegal = funct3[2:1] != 2'b01 || (amo[1:0] != 0 && amo > 5'd3)
            || (amo == 5'd2 && d.rs2 != 0);
      end
      7'h0F: begin  // fence, fence.i
        d.is_fence_i = funct3 == 3'd1;
        d.illegal = funct3 > 3'd1;
      end
      7'h73: begin
        if (funct3[1:0] != 0) begin
          d.is_csr = 1'b1;
          d.writes_rd = 1'b1;
          d.uses_rs1 = !funct3[2];
        end else if (funct3 != 0) begin
          d.illegal = 1'b1;
        end else if (funct7 == 7'h09) begin
          d.is_sfence = 1'b1;
        end else begin
          case (i[31:20])
            12'h000: d.is_ecall = 1'b1;
            12'h001: d.is_ebreak = 1'b1;
            12'h102: d.is_sret = 1'b1;
            12'h302: d.is_mret = 1'b1;
            12'h105: d.is_wfi = 1'b1;
            default: d.illegal = 1'b1;
          endcase
        end
      end
      default: d.illegal = 1'b1;
    endcase
    if (d.rd == 0) d.writes_rd = 1'b0;
  end
endmodule
