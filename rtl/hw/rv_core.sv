// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A core of RV64IMAC with M, S and U, in order, one instruction at a time per stage:
// fetch (rv_fetch: two cycles and a queue), decode, execute, memory, write-back. Branches are decided
// in execute; traps are taken in memory, where an access begins only when all before it is done, so
// that a load of the network interface is never speculative.
module rv_core #(
    parameter logic [63:0] RESET_PC = 64'h8000_0000
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [63:0]  hart,
    input  logic [63:0]  timer,
    input  logic         timer_interrupt,
    // The network interface and other devices.
    output logic         port_valid,
    output logic         port_is_store,
    output logic [27:0]  port_address,
    output logic [63:0]  port_wdata,
    input  logic [63:0]  port_rdata,
    // Memory.
    output logic         memory_valid,
    output logic         memory_is_write,
    output logic [31:0]  memory_address,
    output logic [63:0]  memory_wdata,
    output logic [7:0]   memory_mask,
    input  logic         memory_ready,
    input  logic         memory_done,
    input  logic [127:0] memory_rdata
);
  // --- what the stages decide about the flow
  logic x_redirect, m_redirect, invalidate_fetch;
  logic [63:0] x_target, m_target;
  wire redirect = x_redirect || m_redirect;

  // --- translation state
  logic [1:0] privilege, data_privilege;
  logic sum, mxr, is_paged, tlb_flush;
  logic [43:0] root;
  logic data_walk, fetch_walk, data_insert, data_fault, fetch_insert, fetch_fault;
  logic [26:0] data_page, fetch_page, walked_page;
  logic [43:0] walked_frame;
  logic [1:0] walked_level;
  rv::page_flags_t walked_flags;
  logic [2:0] read_valid, read_ready, read_done;
  logic [31:0] data_read_address, table_address, fetch_address;
  rv_walker walker (
      .clk, .rst, .flush(tlb_flush), .root, .data_request(data_walk), .data_page,
      .fetch_request(fetch_walk), .fetch_page, .data_insert, .data_fault, .fetch_insert,
      .fetch_fault, .page(walked_page), .frame(walked_frame), .level(walked_level),
      .flags(walked_flags), .read_valid(read_valid[1]), .read_address(table_address),
      .read_ready(read_ready[1]), .read_done(read_done[1]), .read_data(memory_rdata)
  );

  // --- fetch
  logic f_valid, f_ready, f_is_compressed, f_page_fault, f_access_fault, learn, learn_taken;
  logic [63:0] f_pc, f_next, f_fault_address;
  logic [31:0] f_instruction;
  rv_fetch #(.RESET_PC(RESET_PC)) fetcher (
      .clk, .rst, .redirect, .redirect_pc(m_redirect ? m_target : x_target),
      .invalidate(invalidate_fetch), .is_translated(is_paged && privilege != rv::PRIVILEGE_M),
      .is_user(privilege == rv::PRIVILEGE_U), .tlb_flush, .walk_request(fetch_walk),
      .walk_page(fetch_page), .walk_insert(fetch_insert),
      .walk_fault(fetch_fault && walked_page == fetch_page), .insert_page(walked_page),
      .insert_frame(walked_frame), .insert_level(walked_level), .insert_flags(walked_flags),
      .read_valid(read_valid[2]), .read_address(fetch_address), .read_ready(read_ready[2]),
      .read_done(read_done[2]), .read_data(memory_rdata), .out_valid(f_valid), .out_ready(f_ready),
      .out_pc(f_pc), .out_instruction(f_instruction), .out_is_compressed(f_is_compressed),
      .out_next(f_next), .out_page_fault(f_page_fault), .out_access_fault(f_access_fault),
      .out_fault_address(f_fault_address), .learn, .learn_pc(x_pc), .learn_taken
  );

  // --- decode: operands from registers, or from the stages behind
  logic d_valid, d_is_compressed, d_page_fault, d_access_fault;
  logic [63:0] d_pc, d_next, d_fault_address, d_immediate;
  logic [31:0] d_instruction;
  rv::decoded_t d;
  rv_decode decode (.i(d_instruction), .d, .immediate(d_immediate));

  logic x_valid, x_ready, x_fire, m_valid, m_done, m_trap, w_valid;
  rv::decoded_t x, m;
  logic [63:0] x_result, m_result, w_value;
  logic [4:0] w_rd;
  logic [63:0] registers[32];
  wire x_is_late = x.is_load || x.is_atomic || x.is_muldiv || x.is_csr;

  logic [63:0] operand_1, operand_2;
  logic is_missing_1, is_missing_2;
  rv_bypass bypass_1 (
      .rs(d.rs1), .file(registers[d.rs1]), .x_writes(x_valid && x.writes_rd), .x_rd(x.rd),
      .x_is_late, .x_result, .m_writes(m_valid && m.writes_rd), .m_rd(m.rd), .m_done, .m_result,
      .w_writes(w_valid), .w_rd, .w_value, .is_missing(is_missing_1), .value(operand_1)
  );
  rv_bypass bypass_2 (
      .rs(d.rs2), .file(registers[d.rs2]), .x_writes(x_valid && x.writes_rd), .x_rd(x.rd),
      .x_is_late, .x_result, .m_writes(m_valid && m.writes_rd), .m_rd(m.rd), .m_done, .m_result,
      .w_writes(w_valid), .w_rd, .w_value, .is_missing(is_missing_2), .value(operand_2)
  );
  wire d_waits = (d.uses_rs1 && is_missing_1) || (d.uses_rs2 && is_missing_2);
  wire d_fire = d_valid && !d_waits && x_ready;
  assign f_ready = !d_valid || d_fire;

  always_ff @(posedge clk) begin
    if (rst || redirect) d_valid <= 1'b0;
    else if (f_ready) d_valid <= f_valid;
    if (f_ready) begin
      d_pc <= f_pc;
      d_next <= f_next;
      d_instruction <= f_instruction;
      d_is_compressed <= f_is_compressed;
      d_page_fault <= f_page_fault;
      d_access_fault <= f_access_fault;
      d_fault_address <= f_fault_address;
    end
    if (w_valid) registers[w_rd] <= w_value;
  end

  // --- execute: results, branches, addresses
  logic [63:0] x_pc, x_next, x_a, x_b, x_immediate, x_value;
  logic [31:0] x_instruction;
  logic x_is_compressed, x_has_fault, x_taken;
  logic [3:0] x_fault_cause;
  rv_alu alu (
      .op(x.is_branch || x.is_jump ? rv::ALU_ADD : x.alu), .is_word(x.is_word),
      .a(x.a_is_pc ? x_pc : x.a_is_zero ? 64'b0 : x_a),
      .b(x.b_is_immediate ? x_immediate : x_b), .result(x_value)
  );
  wire [63:0] x_sequential = x_pc + (x_is_compressed ? 64'd2 : 64'd4);
  assign x_result = x.is_jump ? x_sequential : x_value;
  always_comb begin
    case (x.funct3[2:1])
      2'b00: x_taken = x_a == x_b;
      2'b10: x_taken = $signed(x_a) < $signed(x_b);
      default: x_taken = x_a < x_b;
    endcase
    x_taken = x_taken != x.funct3[0];
  end
  wire [63:0] x_beside = x_pc + x_immediate;
  wire [63:0] x_actual = x.is_jalr ? {x_value[63:1], 1'b0}
      : x.is_jump || (x.is_branch && x_taken) ? x_beside : x_sequential;
  assign x_redirect = x_fire && !x_has_fault && x_actual != x_next;
  assign x_target = x_actual;
  assign learn = x_fire && !x_has_fault && x.is_branch;
  assign learn_taken = x_taken;

  wire x_is_memory = (x.is_load || x.is_store || x.is_atomic) && !x_has_fault;
  wire x_is_write = x.is_store || (x.is_atomic && x.amo != 5'd2);
  logic tlb_hit;
  logic [43:0] frame;
  rv::page_flags_t flags;
  rv_tlb #(.ENTRIES(16)) tlb (
      .clk, .rst, .flush(tlb_flush), .page(x_value[38:12]), .hit(tlb_hit), .frame, .flags,
      .insert(data_insert), .insert_page(walked_page), .insert_frame(walked_frame),
      .insert_level(walked_level), .insert_flags(walked_flags)
  );
  wire x_is_translated = is_paged && data_privilege != rv::PRIVILEGE_M;
  wire x_is_canonical = x_value[63:39] == {25{x_value[38]}};
  wire x_is_misaligned = (x.funct3[1:0] == 2'd1 && x_value[0])
      || (x.funct3[1:0] == 2'd2 && x_value[1:0] != 0)
      || (x.funct3[1:0] == 2'd3 && x_value[2:0] != 0);
  wire x_walk_failed = data_fault && walked_page == x_value[38:12];
  wire x_is_unknown = x_is_memory && !x_is_misaligned && x_is_translated && x_is_canonical
      && !tlb_hit;
  assign data_walk = x_valid && x_is_unknown && !x_walk_failed;
  assign data_page = x_value[38:12];
  wire mode_is_allowed = data_privilege == rv::PRIVILEGE_U ? flags.user : !flags.user || sum;
  wire x_is_permitted = mode_is_allowed && flags.accessed
      && (x_is_write ? flags.write && flags.dirty : flags.read || (mxr && flags.execute));
  wire [55:0] x_physical = x_is_translated ? {frame, x_value[11:0]} : x_value[55:0];
  wire x_is_somewhere = x_physical[55:32] == 0 && (x_is_translated || x_value[63:56] == 0)
      && (x_physical[31] || (x_physical[31:28] == 4'h4 && !x.is_atomic));
  wire x_page_fault = x_is_translated
      && (!x_is_canonical || (tlb_hit && !x_is_permitted) || (x_is_unknown && x_walk_failed));

  logic x_memory_fault;
  logic [3:0] x_memory_cause;
  always_comb begin
    x_memory_fault = x_is_memory;
    if (x_is_misaligned)
      x_memory_cause = x_is_write ? rv::CAUSE_STORE_MISALIGNED : rv::CAUSE_LOAD_MISALIGNED;
    else if (x_page_fault)
      x_memory_cause = x_is_write ? rv::CAUSE_STORE_PAGE : rv::CAUSE_LOAD_PAGE;
    else begin
      x_memory_cause = x_is_write ? rv::CAUSE_STORE_ACCESS : rv::CAUSE_LOAD_ACCESS;
      if (x_is_somewhere) x_memory_fault = 1'b0;
    end
  end

  logic ahead_conflict, m_ready;
  wire x_waits = (x_is_unknown && !x_walk_failed) || (x_is_memory && ahead_conflict);
  assign x_fire = x_valid && m_ready && !x_waits;
  assign x_ready = !x_valid || x_fire;

  always_ff @(posedge clk) begin
    if (rst || redirect) x_valid <= 1'b0;
    else if (x_ready) x_valid <= d_fire;
    if (x_ready) begin
      x <= d;
      if (d_page_fault || d_access_fault) x <= '0;
      x_pc <= d_pc;
      x_next <= d_next;
      x_instruction <= d_instruction;
      x_is_compressed <= d_is_compressed;
      x_a <= operand_1;
      x_b <= operand_2;
      x_immediate <= d_page_fault || d_access_fault ? d_fault_address : d_immediate;
      x_has_fault <= d_page_fault || d_access_fault || d.illegal;
      x_fault_cause <= d_page_fault ? rv::CAUSE_FETCH_PAGE
          : d_access_fault ? rv::CAUSE_FETCH_ACCESS : rv::CAUSE_ILLEGAL;
    end
  end

  // --- memory: accesses, long operations, control registers, traps
  logic [63:0] m_pc, m_a, m_b, m_value, m_next, m_fault_value;
  logic [31:0] m_instruction, m_physical;
  logic m_has_fault, m_has_begun, lsu_done, muldiv_done, is_drained;
  logic [3:0] m_fault_cause;
  logic [63:0] loaded, muldiv_result, csr_value, trap_target, return_target;
  logic csr_is_illegal, return_is_illegal, has_interrupt;
  logic [3:0] interrupt_cause, trap_cause;

  wire m_interrupted = has_interrupt && !m_has_begun;
  wire m_is_return = m.is_mret || m.is_sret;
  wire m_is_illegal = csr_is_illegal || return_is_illegal;
  wire m_fails = m_has_fault || m_is_illegal || m.is_ecall || m.is_ebreak;
  assign m_trap = m_valid && (m_interrupted || m_fails);
  wire m_is_memory = m.is_load || m.is_store || m.is_atomic;
  wire m_runs = m_valid && !m_trap;
  always_comb begin
    trap_cause = m_fault_cause;
    if (m_interrupted) trap_cause = interrupt_cause;
    else if (m_has_fault) trap_cause = m_fault_cause;
    else if (m_is_illegal) trap_cause = rv::CAUSE_ILLEGAL;
    else if (m.is_ebreak) trap_cause = rv::CAUSE_BREAKPOINT;
    else trap_cause = rv::CAUSE_ECALL_U + {2'b0, privilege};
    if (m_trap) m_done = 1'b1;
    else if (m_is_memory) m_done = lsu_done;
    else if (m.is_muldiv) m_done = muldiv_done;
    else if (m.is_fence_i || m.is_sfence) m_done = is_drained;
    else m_done = 1'b1;
    if (m_is_memory) m_result = loaded;
    else if (m.is_muldiv) m_result = muldiv_result;
    else if (m.is_csr) m_result = csr_value;
    else m_result = m_value;
  end
  wire m_ends = m_valid && m_done;
  assign m_ready = !m_valid || m_done;
  wire m_is_csr_write = m.is_csr && (m.funct3[1:0] == 2'd1 || m.rs1 != 0);
  assign m_redirect = m_ends
      && (m_trap || m_is_csr_write || m_is_return || m.is_fence_i || m.is_sfence);
  assign m_target = m_trap ? trap_target : m_is_return ? return_target : m_next;
  assign invalidate_fetch = m_ends && !m_trap && m.is_fence_i;
  assign tlb_flush = m_ends && !m_trap && (m.is_sfence || (m_is_csr_write && m.csr == 12'h180));

  rv_csr csr (
      .clk, .rst, .hart, .timer, .timer_interrupt, .address(m.csr),
      .is_access(m_valid && m.is_csr && !m_has_fault), .is_write(m_is_csr_write),
      .operation(m.funct3[1:0]), .operand(m.funct3[2] ? {59'b0, m.rs1} : m_a), .value(csr_value),
      .is_illegal(csr_is_illegal), .commit(m_ends && !m_trap), .retire(m_ends && !m_trap),
      .trap(m_trap), .trap_is_interrupt(m_interrupted), .trap_cause, .trap_pc(m_pc),
      .trap_value(m_interrupted ? '0 : m_has_fault ? m_fault_value
                  : m_is_illegal ? {32'b0, m_instruction} : m.is_ebreak ? m_pc : '0),
      .is_mret(m_valid && m.is_mret), .is_sret(m_valid && m.is_sret),
      .is_sfence(m_valid && m.is_sfence), .is_wfi(m_valid && m.is_wfi), .return_is_illegal,
      .trap_target, .return_target, .has_interrupt, .interrupt_cause, .privilege, .data_privilege,
      .sum, .mxr, .is_paged, .root
  );
  rv_muldiv muldiv (
      .clk, .rst, .start(m_runs && m.is_muldiv), .kill(1'b0), .funct3(m.funct3),
      .is_word(m.is_word), .a(m_a), .b(m_b), .done(muldiv_done), .result(muldiv_result)
  );
  logic write_valid, write_ready;
  logic [31:0] write_address;
  logic [63:0] write_data;
  logic [7:0] write_mask;
  rv_lsu lsu (
      .clk, .rst, .ahead(x_fire && x_is_memory), .ahead_address(x_physical[31:0]), .ahead_conflict,
      .valid(m_runs && m_is_memory), .is_load(m.is_load), .is_store(m.is_store),
      .is_atomic(m.is_atomic), .amo(m.amo), .funct3(m.funct3), .address(m_physical), .data(m_b),
      .done(lsu_done), .result(loaded), .is_drained, .drop_reservation(m_trap), .port_valid,
      .port_is_store, .port_address, .port_wdata, .port_rdata, .read_valid(read_valid[0]),
      .read_address(data_read_address), .read_ready(read_ready[0]), .read_done(read_done[0]),
      .read_data(memory_rdata), .write_valid, .write_address, .write_data, .write_mask,
      .write_ready
  );
  rv_bus bus (
      .clk, .rst, .write_valid, .write_address, .write_data, .write_mask, .write_ready,
      .read_valid, .data_address(data_read_address), .table_address, .fetch_address, .read_ready,
      .read_done, .memory_valid, .memory_is_write, .memory_address, .memory_wdata, .memory_mask,
      .memory_ready, .memory_done
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      m_valid <= 1'b0;
      m_has_begun <= 1'b0;
      w_valid <= 1'b0;
    end else begin
      if (m_ready) m_valid <= x_fire && !m_redirect;
      m_has_begun <= m_valid && !m_done;
      w_valid <= m_ends && !m_trap && m.writes_rd;
    end
    if (m_ready) begin
      m <= x;
      m_pc <= x_pc;
      m_next <= x_sequential;
      m_instruction <= x_instruction;
      m_a <= x_a;
      m_b <= x_b;
      m_value <= x_result;
      m_physical <= x_physical[31:0];
      m_has_fault <= x_has_fault || x_memory_fault;
      m_fault_cause <= x_has_fault ? x_fault_cause : x_memory_cause;
      m_fault_value <= !x_has_fault ? x_value
          : x_fault_cause == rv::CAUSE_ILLEGAL ? {32'b0, x_instruction} : x_immediate;
    end
    w_rd <= m.rd;
    w_value <= m_result;
  end
  wire unused = &{1'b0, flags, x, m, 1'b0};
endmodule
