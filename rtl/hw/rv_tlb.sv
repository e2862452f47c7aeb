// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Translations of pages of 4 KiB, 2 MiB and 1 GiB, any of them in any entry.
module rv_tlb #(
    parameter int ENTRIES = 16
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            flush,
    input  logic [26:0]     page,
    output logic            hit,
    output logic [43:0]     frame,
    output rv::page_flags_t flags,
    input  logic            insert,
    input  logic [26:0]     insert_page,
    input  logic [43:0]     insert_frame,
    input  logic [1:0]      insert_level,  // 0: 4 KiB
    input  rv::page_flags_t insert_flags
);
  localparam int BITS = $clog2(ENTRIES);
  logic [ENTRIES-1:0] valid;
  logic [26:0] pages[ENTRIES];
  logic [43:0] frames[ENTRIES];
  logic [1:0] levels[ENTRIES];
  logic [5:0] all_flags[ENTRIES];
  logic [BITS-1:0] next;

  always_comb begin
    hit = 1'b0;
    frame = '0;
    flags = '0;
    for (int i = 0; i < ENTRIES; i++) begin
      if (valid[i] && pages[i][26:18] == page[26:18]
          && (levels[i] > 2'd1 || pages[i][17:9] == page[17:9])
          && (levels[i] > 2'd0 || pages[i][8:0] == page[8:0])) begin
        hit = 1'b1;
        flags = all_flags[i];
        frame[43:18] = frames[i][43:18];
        frame[17:9] = levels[i] > 2'd1 ? page[17:9] : frames[i][17:9];
        frame[8:0] = levels[i] > 2'd0 ? page[8:0] : frames[i][8:0];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst || flush) begin
      valid <= '0;
      next  <= '0;
    end else if (insert && !hit) begin
      valid[next] <= 1'b1;
      next        <= next + 1'b1;
    end
    if (insert && !hit) begin
      pages[next]     <= insert_page;
      frames[next]    <= insert_frame;
      levels[next]    <= insert_level;
      all_flags[next] <= insert_flags;
    end
  end
endmodule
