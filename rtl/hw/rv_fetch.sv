// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Fetches ahead into a queue of half-words: a cache of 16 KiB with lines of 16 bytes, a predictor of
// branches with two bits each (backwards taken where it knows nothing), and two return addresses.
// A predicted jump costs one cycle without an instruction, as Ariane's does.
module rv_fetch #(
    parameter logic [63:0] RESET_PC = 64'h8000_0000,
    parameter int LINES = 1024,
    parameter int HISTORY = 128,
    parameter int TLB_ENTRIES = 16
) (
    input  logic            clk,
    input  logic            rst,
    // Where to go on.
    input  logic            redirect,
    input  logic [63:0]     redirect_pc,
    input  logic            invalidate,  // the cache, at a redirect
    // Translation.
    input  logic            is_translated,
    input  logic            is_user,
    input  logic            tlb_flush,
    output logic            walk_request,
    output logic [26:0]     walk_page,
    input  logic            walk_insert,
    input  logic            walk_fault,
    input  logic [26:0]     insert_page,
    input  logic [43:0]     insert_frame,
    input  logic [1:0]      insert_level,
    input  rv::page_flags_t insert_flags,
    // Memory.
    output logic            read_valid,
    output logic [31:0]     read_address,
    input  logic            read_ready,
    input  logic            read_done,
    input  logic [127:0]    read_data,
    // Instructions, and what comes after them by prediction.
    output logic            out_valid,
    input  logic            out_ready,
    output logic [63:0]     out_pc,
    output logic [31:0]     out_instruction,
    output logic            out_is_compressed,
    output logic [63:0]     out_next,
    output logic            out_page_fault,
    output logic            out_access_fault,
    output logic [63:0]     out_fault_address,
    // What became of a branch.
    input  logic            learn,
    input  logic [63:0]     learn_pc,
    input  logic            learn_taken
);
  localparam int INDEX_BITS = $clog2(LINES);
  localparam int TAG_BITS = 32 - 4 - INDEX_BITS;
  localparam int HISTORY_BITS = $clog2(HISTORY);

  // --- the queue of half-words; the first is at head_pc
  logic [255:0] queue;
  logic [4:0] count;
  logic [63:0] head_pc;

  logic jump;          // a predicted one: flushes what was fetched behind it
  logic [63:0] target;
  wire turn = redirect || jump;

  // --- first cycle: translate, and address the cache
  logic [63:0] pc;     // next to fetch
  logic second_valid;
  logic [31:0] second_address;
  logic is_faulty, fault_is_page, is_invalidating;
  logic [INDEX_BITS-1:0] invalidate_line;
  logic tlb_hit;
  logic [43:0] frame;
  rv::page_flags_t flags;
  rv_tlb #(.ENTRIES(TLB_ENTRIES)) tlb (
      .clk, .rst, .flush(tlb_flush), .page(pc[38:12]), .hit(tlb_hit), .frame, .flags,
      .insert(walk_insert), .insert_page, .insert_frame, .insert_level, .insert_flags
  );
  wire is_canonical = pc[63:39] == {25{pc[38]}};
  wire is_permitted = flags.execute && flags.accessed && flags.user == is_user;
  wire [55:0] physical = is_translated ? {frame, pc[11:0]} : pc[55:0];
  wire is_in_memory = physical[55:32] == 0 && physical[31]
      && (is_translated || pc[63:56] == 0);

  logic second_stall;
  wire has_space = count <= 5'd6 && !second_stall;
  wire may_fetch = !rst && !turn && has_space && !is_faulty && !is_invalidating;
  wire is_missing = is_translated && is_canonical && !tlb_hit;
  assign walk_request = may_fetch && is_missing && !walk_fault;
  assign walk_page = pc[38:12];
  wire page_fault = is_translated
      && (!is_canonical || (tlb_hit && !is_permitted) || (is_missing && walk_fault));
  wire access_fault = !page_fault && !is_missing && !is_in_memory;
  wire fetch = may_fetch && !is_missing && !page_fault && !access_fault;

  // --- second cycle: compare, and fill what is missing
  logic [127:0] lines[LINES];
  logic [TAG_BITS:0] tags[LINES];  // {valid, tag}
  initial for (int i = 0; i < LINES; i++) tags[i] = '0;
  logic [127:0] line_read;
  logic [TAG_BITS:0] tag_read;
  logic is_filling, is_asked, is_abandoned;
  logic [31:0] fill_address;
  wire [INDEX_BITS-1:0] index = physical[4+:INDEX_BITS];
  wire [INDEX_BITS-1:0] fill_index = fill_address[4+:INDEX_BITS];
  wire filled = is_filling && read_done && is_asked;

  always_ff @(posedge clk) begin
    if (filled) lines[fill_index] <= read_data;
    if (fetch) line_read <= lines[index];
  end
  wire [INDEX_BITS-1:0] tag_line = is_invalidating ? invalidate_line : fill_index;
  always_ff @(posedge clk) begin
    if (filled || is_invalidating)
      tags[tag_line] <= is_invalidating ? '0 : {1'b1, fill_address[31-:TAG_BITS]};
    if (fetch) tag_read <= tags[index];
  end
  wire hit = tag_read == {1'b1, second_address[31-:TAG_BITS]};
  wire arrives = second_valid && (is_filling ? filled && !is_abandoned : hit);
  assign second_stall = second_valid && !arrives;
  assign read_valid = is_filling && !is_asked;
  assign read_address = {fill_address[31:4], 4'b0};

  wire [127:0] line = is_filling ? read_data : line_read;
  wire [63:0] words = second_address[3] ? line[127:64] : line[63:0];
  wire [63:0] pushed = words >> {second_address[2:1], 4'b0};
  wire [4:0] pushed_count = 5'd4 - {3'b0, second_address[2:1]};

  // --- out: one instruction, expanded; what arrives is seen at once
  wire [255:0] seen = arrives ? queue | ({192'b0, pushed} << {count, 4'b0}) : queue;
  wire [4:0] seen_count = count + (arrives ? pushed_count : 5'd0);
  wire is_compressed = seen[1:0] != 2'b11;
  wire is_whole = seen_count >= (is_compressed ? 5'd1 : 5'd2);
  wire is_dry = is_faulty && !second_valid && (seen_count == 0 || !is_whole);
  logic [31:0] expanded;
  rv_decompress decompress (.c(seen[15:0]), .expanded);
  assign out_valid = (seen_count != 0 && is_whole) || is_dry;
  assign out_pc = head_pc;
  assign out_is_compressed = is_compressed;
  assign out_instruction = is_compressed ? expanded : seen[31:0];
  assign out_page_fault = is_dry && fault_is_page;
  assign out_access_fault = is_dry && !fault_is_page;
  assign out_fault_address = pc;
  wire pop = out_valid && out_ready && !is_dry;
  wire [4:0] pop_count = is_compressed ? 5'd1 : 5'd2;
  wire [63:0] sequential = head_pc + (is_compressed ? 64'd2 : 64'd4);

  // --- prediction
  wire [31:0] i = out_instruction;
  wire [63:0] jump_offset = {{44{i[31]}}, i[19:12], i[20], i[30:21], 1'b0};
  wire [63:0] branch_offset = {{52{i[31]}}, i[7], i[30:25], i[11:8], 1'b0};
  wire is_jal = i[6:0] == 7'h6F;
  wire is_jalr = i[6:0] == 7'h67;
  wire is_branch = i[6:0] == 7'h63;
  wire is_call = (is_jal || is_jalr) && i[11:7] == 5'd1;
  wire is_return = is_jalr && i[11:7] == 5'd0 && i[19:15] == 5'd1;
  logic [63:0] returns[2];
  logic [1:0] counters[HISTORY];
  logic [HISTORY-1:0] is_known;
  wire [HISTORY_BITS-1:0] history_at = head_pc[HISTORY_BITS:1];
  wire [HISTORY_BITS-1:0] learn_at = learn_pc[HISTORY_BITS:1];
  wire [1:0] counter = counters[learn_at];
  wire taken = is_known[history_at] ? counters[history_at][1] : i[31];
  wire is_turn = is_jal || is_return || (is_branch && taken);
  assign target = is_return ? returns[0] : head_pc + (is_jal ? jump_offset : branch_offset);
  assign jump = pop && is_turn;
  assign out_next = is_turn ? target : sequential;

  always_ff @(posedge clk) begin
    if (learn) begin
      if (!is_known[learn_at]) counters[learn_at] <= learn_taken ? 2'd2 : 2'd1;
      else if (learn_taken && counter != 2'd3) counters[learn_at] <= counter + 1'b1;
      else if (!learn_taken && counter != 2'd0) counters[learn_at] <= counter - 1'b1;
    end
    if (pop && is_call) {returns[1], returns[0]} <= {returns[0], sequential};
    else if (pop && is_return) returns[0] <= returns[1];
    if (rst) is_known <= '0;
    else if (learn) is_known[learn_at] <= 1'b1;
  end

  // --- state
  wire [255:0] next_queue = !pop ? seen : is_compressed ? seen >> 16 : seen >> 32;

  always_ff @(posedge clk) begin
    if (rst) begin
      pc <= RESET_PC;
      head_pc <= RESET_PC;
      queue <= '0;
      count <= '0;
      {second_valid, is_filling, is_asked, is_abandoned, is_faulty} <= '0;
      is_invalidating <= 1'b1;
      invalidate_line <= '0;
    end else begin
      // Fetching.
      if (fetch) begin
        second_address <= physical[31:0];
        pc <= {pc[63:3] + 61'd1, 3'b0};
      end
      if (fetch) second_valid <= 1'b1;
      else if (arrives) second_valid <= 1'b0;
      if (may_fetch && (page_fault || access_fault)) begin
        is_faulty <= 1'b1;
        fault_is_page <= page_fault;
      end
      // Filling.
      if (second_valid && !is_filling && !hit) begin
        is_filling <= 1'b1;
        fill_address <= second_address;
      end
      if (read_valid && read_ready) is_asked <= 1'b1;
      if (filled) {is_filling, is_asked, is_abandoned} <= '0;
      // The queue.
      queue <= next_queue;
      count <= pop ? seen_count - pop_count : seen_count;
      if (pop) head_pc <= sequential;
      if (turn) begin
        pc <= redirect ? redirect_pc : target;
        head_pc <= redirect ? redirect_pc : target;
        queue <= '0;
        count <= '0;
        second_valid <= 1'b0;
        is_faulty <= 1'b0;
        if (is_filling && !filled) is_abandoned <= 1'b1;
        else if (!is_filling) is_filling <= 1'b0;
      end
      if (is_invalidating) begin
        invalidate_line <= invalidate_line + 1'b1;
        if (invalidate_line == '1) is_invalidating <= 1'b0;
      end else if (redirect && invalidate) begin
        is_invalidating <= 1'b1;
      end
    end
  end
  wire unused = &{1'b0, head_pc[0], learn_pc[63:HISTORY_BITS+1], learn_pc[0], flags, fill_address[3:0], 1'b0};
endmodule
