// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What the stages of the core tell each other.
package rv;
  localparam logic [1:0] PRIVILEGE_U = 0;
  localparam logic [1:0] PRIVILEGE_S = 1;
  localparam logic [1:0] PRIVILEGE_M = 3;

  localparam logic [3:0] CAUSE_FETCH_ACCESS = 1;
  localparam logic [3:0] CAUSE_ILLEGAL = 2;
  localparam logic [3:0] CAUSE_BREAKPOINT = 3;
  localparam logic [3:0] CAUSE_LOAD_MISALIGNED = 4;
  localparam logic [3:0] CAUSE_LOAD_ACCESS = 5;
  localparam logic [3:0] CAUSE_STORE_MISALIGNED = 6;
  localparam logic [3:0] CAUSE_STORE_ACCESS = 7;
  localparam logic [3:0] CAUSE_ECALL_U = 8;
  localparam logic [3:0] CAUSE_FETCH_PAGE = 12;
  localparam logic [3:0] CAUSE_LOAD_PAGE = 13;
  localparam logic [3:0] CAUSE_STORE_PAGE = 15;

  localparam logic [3:0] ALU_ADD = 0;
  localparam logic [3:0] ALU_SLL = 1;
  localparam logic [3:0] ALU_SLT = 2;
  localparam logic [3:0] ALU_SLTU = 3;
  localparam logic [3:0] ALU_XOR = 4;
  localparam logic [3:0] ALU_SRL = 5;
  localparam logic [3:0] ALU_OR = 6;
  localparam logic [3:0] ALU_AND = 7;
  localparam logic [3:0] ALU_SUB = 8;
  localparam logic [3:0] ALU_SRA = 13;

  typedef struct packed {
    logic        illegal;
    logic [4:0]  rd;
    logic [4:0]  rs1;
    logic [4:0]  rs2;
    logic        uses_rs1;
    logic        uses_rs2;
    logic        writes_rd;
    logic [3:0]  alu;
    logic        is_word;     // 32 bits, sign extended
    logic        a_is_pc;
    logic        a_is_zero;
    logic        b_is_immediate;
    logic        is_branch;
    logic        is_jump;     // jal, jalr
    logic        is_jalr;
    logic        is_load;
    logic        is_store;
    logic        is_atomic;   // with amo; lr and sc too
    logic [4:0]  amo;
    logic        is_muldiv;
    logic        is_csr;
    logic        is_ecall;
    logic        is_ebreak;
    logic        is_mret;
    logic        is_sret;
    logic        is_fence_i;
    logic        is_sfence;
    logic        is_wfi;
    logic [2:0]  funct3;
    logic [11:0] csr;
  } decoded_t;

  // Flags of a page as its translation holds them.
  typedef struct packed {
    logic dirty;
    logic accessed;
    logic user;
    logic execute;
    logic write;
    logic read;
  } page_flags_t;
endpackage
