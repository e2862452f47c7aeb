// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Loads and stores of the core. Memory is behind a cache of 32 KiB that is written through: stores
// wait in a buffer, and a load that misses waits for them. The window of the network interface
// (0x4000_0000 to 0x4FFF_FFFF) has a path of its own: one register, then the device. A store is
// acknowledged as it enters that register, so that stores pass at the pipeline's speed; a load waits
// for its data, two cycles more than one that hits the cache.
module rv_lsu #(
    parameter int LINES = 2048
) (
    input  logic         clk,
    input  logic         rst,
    // The access that will be next: its line is read ahead.
    input  logic         ahead,
    input  logic [31:0]  ahead_address,
    output logic         ahead_conflict,
    // The access that completes here.
    input  logic         valid,
    input  logic         is_load,
    input  logic         is_store,
    input  logic         is_atomic,
    input  logic [4:0]   amo,
    input  logic [2:0]   funct3,
    input  logic [31:0]  address,
    input  logic [63:0]  data,
    output logic         done,
    output logic [63:0]  result,
    output logic         is_drained,
    input  logic         drop_reservation,
    // The network interface.
    output logic         port_valid,
    output logic         port_is_store,
    output logic [27:0]  port_address,
    output logic [63:0]  port_wdata,
    input  logic [63:0]  port_rdata,
    // Memory.
    output logic         read_valid,
    output logic [31:0]  read_address,
    input  logic         read_ready,
    input  logic         read_done,
    input  logic [127:0] read_data,
    output logic         write_valid,
    output logic [31:0]  write_address,
    output logic [63:0]  write_data,
    output logic [7:0]   write_mask,
    input  logic         write_ready
);
  localparam int INDEX_BITS = $clog2(LINES);
  localparam int TAG_BITS = 32 - 4 - INDEX_BITS;
  localparam logic [2:0] RUN = 0, ASK = 1, FILL = 2, MODIFY = 3, PORT = 4, ANSWER = 5;

  logic [2:0] state;
  wire is_window = !address[31];
  wire is_lr = is_atomic && amo == 5'd2;
  wire is_sc = is_atomic && amo == 5'd3;
  wire reads_memory = (is_load || (is_atomic && !is_sc)) && !is_window;

  // --- cache
  logic [127:0] lines[LINES];
  logic [TAG_BITS:0] tags[LINES];
  initial for (int i = 0; i < LINES; i++) tags[i] = '0;
  logic [127:0] line_read, line_written;
  logic [TAG_BITS:0] tag_read;
  logic [15:0] line_mask;
  wire [INDEX_BITS-1:0] index = address[4+:INDEX_BITS];
  wire [INDEX_BITS-1:0] ahead_index = ahead_address[4+:INDEX_BITS];
  wire is_filled = state == FILL && read_done;
  logic was_filled;  // this access has filled its line
  wire hit = was_filled || tag_read == {1'b1, address[31-:TAG_BITS]};

  always_ff @(posedge clk) begin
    for (int i = 0; i < 16; i++) if (line_mask[i]) lines[index][8*i+:8] <= line_written[8*i+:8];
    if (ahead) line_read <= lines[ahead_index];
  end
  always_ff @(posedge clk) begin
    if (is_filled) tags[index] <= {1'b1, address[31-:TAG_BITS]};
    if (ahead) tag_read <= tags[ahead_index];
  end
  assign ahead_conflict = line_mask != 0 && ahead_index == index;

  // --- loads
  wire [127:0] line = state == FILL ? read_data : line_read;
  wire [63:0] from_memory = (address[3] ? line[127:64] : line[63:0]) >> {address[2:0], 3'b0};
  wire [63:0] raw = is_window ? port_rdata >> {address[2:0], 3'b0} : from_memory;
  logic [63:0] extended;
  always_comb begin
    case (funct3)
      3'd0: extended = {{56{raw[7]}}, raw[7:0]};
      3'd1: extended = {{48{raw[15]}}, raw[15:0]};
      3'd2: extended = {{32{raw[31]}}, raw[31:0]};
      3'd4: extended = {56'b0, raw[7:0]};
      3'd5: extended = {48'b0, raw[15:0]};
      3'd6: extended = {32'b0, raw[31:0]};
      default: extended = raw;
    endcase
  end

  // --- atomics
  logic [63:0] old;
  logic [63:0] modified;
  wire [63:0] operand = funct3[0] ? data : {{32{data[31]}}, data[31:0]};
  wire is_less = amo[3] ? old_unsigned < operand_unsigned : $signed(old) < $signed(operand);
  wire [63:0] old_unsigned = funct3[0] ? old : {32'b0, old[31:0]};
  wire [63:0] operand_unsigned = funct3[0] ? data : {32'b0, data[31:0]};
  always_comb begin
    case (amo)
      5'h00: modified = old + operand;
      5'h01: modified = operand;
      5'h04: modified = old ^ operand;
      5'h08: modified = old | operand;
      5'h0C: modified = old & operand;
      5'h10, 5'h18: modified = is_less ? old : operand;
      default: modified = is_less ? operand : old;
    endcase
  end
  logic is_reserved;
  logic [31:3] reserved;
  wire sc_succeeds = is_reserved && reserved == address[31:3];

  // --- stores
  wire [63:0] value = state == MODIFY ? modified : data;
  wire [7:0] size_mask = funct3[1:0] == 0 ? 8'h01 : funct3[1:0] == 2'd1 ? 8'h03
      : funct3[1:0] == 2'd2 ? 8'h0F : 8'hFF;
  wire [63:0] placed = value << {address[2:0], 3'b0};
  wire [7:0] placed_mask = size_mask << address[2:0];
  wire wants_store = !is_window
      && ((valid && state == RUN && (is_store || (is_sc && sc_succeeds))) || state == MODIFY);
  logic has_space;
  wire store = wants_store && has_space;
  fifo #(.WIDTH(32 + 64 + 8), .DEPTH(8)) buffer (
      .clk, .rst, .in_valid(wants_store), .in_ready(has_space),
      .in_data({address[31:3], 3'b0, placed, placed_mask}), .out_valid(write_valid),
      .out_ready(write_ready), .out_data({write_address, write_data, write_mask})
  );
  assign is_drained = !write_valid;
  always_comb begin
    line_written = is_filled ? read_data : {placed, placed};
    line_mask = is_filled ? 16'hFFFF
        : store && hit ? (address[3] ? {placed_mask, 8'b0} : {8'b0, placed_mask}) : 16'b0;
  end

  assign read_valid = state == ASK && !write_valid;
  assign read_address = {address[31:4], 4'b0};

  always_comb begin
    done = 1'b0;
    case (state)
      RUN:
        if (is_window) done = is_store;
        else if (is_load || is_lr) done = hit;
        else if (is_sc) done = !sc_succeeds || has_space;
        else if (is_store) done = has_space;
      FILL: done = read_done && (is_load || is_lr);
      MODIFY: done = has_space;
      ANSWER: done = 1'b1;
      default: ;
    endcase
    if (state == MODIFY) result = old;
    else if (is_sc) result = {63'b0, !sc_succeeds};
    else result = extended;
  end

  wire send = valid && state == RUN && is_window;
  always_ff @(posedge clk) begin
    port_valid    <= send && !rst;
    port_is_store <= is_store;
    port_address  <= address[27:0];
    port_wdata    <= data;
    if (rst) begin
      state <= RUN;
      was_filled <= 1'b0;
      is_reserved <= 1'b0;
    end else begin
      if (is_filled) was_filled <= 1'b1;
      if (valid && done) was_filled <= 1'b0;
      case (state)
        RUN:
          if (valid && is_window && !is_store) state <= PORT;
          else if (valid && reads_memory && !hit) state <= ASK;
          else if (valid && reads_memory && !done) state <= MODIFY;
        ASK: if (read_valid && read_ready) state <= FILL;
        FILL: if (read_done) state <= is_load || is_lr ? RUN : MODIFY;
        MODIFY: if (has_space) state <= RUN;
        PORT: state <= ANSWER;
        default: state <= RUN;
      endcase
      if (drop_reservation || (valid && done && is_sc)) is_reserved <= 1'b0;
      else if (valid && done && is_lr) is_reserved <= 1'b1;
    end
    if (valid && done && is_lr) reserved <= address[31:3];
    if (state == RUN || state == FILL) old <= extended;
  end
  wire unused = &{1'b0, ahead_address, 1'b0};
endmodule
