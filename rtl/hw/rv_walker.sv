// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Walks the page tables of Sv39 in memory, past the caches: as many reads as there are levels.
// Data goes before instructions. Whether an access is allowed is decided where it is made.
module rv_walker (
    input  logic            clk,
    input  logic            rst,
    input  logic            flush,  // what is under way is not inserted
    input  logic [43:0]     root,
    input  logic            data_request,
    input  logic [26:0]     data_page,
    input  logic            fetch_request,
    input  logic [26:0]     fetch_page,
    // The outcome, for one cycle: an insertion, or a fault.
    output logic            data_insert,
    output logic            data_fault,
    output logic            fetch_insert,
    output logic            fetch_fault,
    output logic [26:0]     page,
    output logic [43:0]     frame,
    output logic [1:0]      level,
    output rv::page_flags_t flags,
    // Reads.
    output logic            read_valid,
    output logic [31:0]     read_address,
    input  logic            read_ready,
    input  logic            read_done,
    input  logic [127:0]    read_data
);
  localparam logic [1:0] IDLE = 0, ASK = 1, WAIT = 2;
  logic [1:0] state;
  logic is_for_data, is_flushed;
  logic [43:0] table_frame;

  wire [8:0] index = level == 2'd2 ? page[26:18] : level == 2'd1 ? page[17:9] : page[8:0];
  wire [55:0] entry_address = {table_frame, index, 3'b0};
  wire [63:0] entry = entry_address[3] ? read_data[127:64] : read_data[63:0];
  wire is_leaf = entry[1] || entry[3];
  wire is_pointer = entry[0] && entry[3:1] == 0;
  wire is_bad = !entry[0] || (!entry[1] && entry[2]) || entry[63:54] != 0
      || (is_pointer && (level == 0 || entry[7:6] != 0 || entry[4]))
      || (is_leaf && level == 2'd2 && entry[27:10] != 0)
      || (is_leaf && level == 2'd1 && entry[18:10] != 0)
      || entry_address[55:32] != 0;
  wire is_over = state == WAIT && read_done && (is_bad || is_leaf);
  wire insert = is_over && !is_bad && !is_flushed && !flush;
  wire fault = is_over && is_bad && !is_flushed && !flush;

  assign read_valid = state == ASK;
  assign read_address = entry_address[31:0];
  assign frame = entry[53:10];
  assign flags = {entry[7], entry[6], entry[4], entry[3], entry[2], entry[1]};
  assign data_insert = insert && is_for_data;
  assign data_fault = fault && is_for_data;
  assign fetch_insert = insert && !is_for_data;
  assign fetch_fault = fault && !is_for_data;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      is_flushed <= 1'b0;
    end else begin
      if (flush && state != IDLE) is_flushed <= 1'b1;
      case (state)
        IDLE: begin
          is_flushed  <= 1'b0;
          level       <= 2'd2;
          table_frame <= root;
          is_for_data <= data_request;
          page        <= data_request ? data_page : fetch_page;
          if ((data_request || fetch_request) && !flush) state <= ASK;
        end
        ASK: if (read_ready) state <= WAIT;
        default:
          if (read_done) begin
            table_frame <= frame;
            level <= level - 1'b1;
            state <= is_bad || is_leaf ? IDLE : ASK;
          end
      endcase
    end
  end
  wire unused = &{1'b0, entry, 1'b0};
endmodule
