// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// What a mailbox promises, for every order of packets, loads and openings: two contexts of two
// packets. Inputs are free but for the form of packets and what one core can do at a time.
module mailbox_formal (
    input logic         clk,
    input logic         any_context,
    input logic [1:0]   any_packet,
    input logic         load_poll,
    input logic         load_data,
    input logic         load_context,
    input logic         set_valid,
    input logic         set_context,
    input logic         set_open,
    input logic         set_drops,
    input logic [15:0]  set_domain,
    input logic         in_valid,
    input logic         in_head,
    input logic         in_tail,
    input logic [127:0] in_data,
    input logic         notice_ready
);
  logic [2:0] age = 0;
  wire rst = age == 0;
  always_ff @(posedge clk) if (age != 7) age <= age + 1'b1;

  logic watched;       // any context
  logic [1:0] chosen;  // any of the packets since its opening
  always_ff @(posedge clk) if (rst) {watched, chosen} <= {any_context, any_packet};

  logic in_ready, poll_hit, last_word, notice_valid;
  logic [63:0] loaded;
  logic [127:0] notice_data;
  mailbox #(.CONTEXTS(2), .DEPTH(2)) mailbox (.self(10'd3), .*);

  net::header_t header;
  assign header = in_data;
  wire take = in_valid && in_ready;

  // --- packets are a header and as many flits as it says: one or two
  logic in_packet = 0;
  logic [1:0] flits_left = 0;
  wire [6:0] size = header.size_bytes;
  always_ff @(posedge clk) begin
    if (!rst && take) begin
      in_packet <= !in_tail;
      flits_left <= in_head ? (size > 16 ? 2'd2 : 2'd1) : flits_left - 1'b1;
    end
  end
  always_comb begin
    assume (!(rst && (in_valid || load_poll || load_data || set_valid)));
    assume (in_head == !in_packet);
    assume (in_tail == (in_packet && flits_left == 1));
    if (in_head) assume (size > 0 && size <= 32);
    assume (!(set_valid && (load_poll || load_data)) && !(load_poll && load_data));
  end

  // --- the watched mailbox as a count of packets, and one of them in full
  logic is_open = 0;
  logic drops = 0;
  logic [15:0] domain = 0;
  logic [1:0] held = 0;
  logic [2:0] entered = 0;   // since the opening
  logic [2:0] left = 0;
  logic is_kept = 0;
  logic [63:0] first_word = 0;
  logic is_first_flit = 0;
  logic [1:0] word = 0;
  logic [1:0] words[4];
  wire is_for_watched = header.context_number == {7'b0, watched};
  wire is_allowed = is_open && domain == header.domain;
  wire is_set = set_valid && set_context == watched;
  wire keeps = is_for_watched && is_allowed && held < 2 && !is_set;
  wire enters = take && !in_head && in_tail && is_kept && !is_set;
  wire takes_word = load_data && load_context == watched && held != 0;
  wire leaves = takes_word && word == words[left[1:0]];
  always_ff @(posedge clk) begin
    if (take && in_head) begin
      is_kept <= keeps;
      is_first_flit <= 1'b1;
      if (keeps) words[entered[1:0]] <= size[5:3] - {2'b0, size[2:0] == 0};
    end else if (take) begin
      is_first_flit <= 1'b0;
      if (is_first_flit && is_kept && entered == {1'b0, chosen}) first_word <= in_data[63:0];
    end
    if (is_set) begin
      {is_open, drops, domain} <= {set_open, set_drops, set_domain};
      {held, entered, left, word} <= '0;
      is_kept <= 1'b0;
    end else begin
      held <= held + {1'b0, enters} - {1'b0, leaves};
      entered <= entered + {2'b0, enters};
      left <= left + {2'b0, leaves};
      if (takes_word) word <= leaves ? '0 : word + 1'b1;
    end
    assume (entered != 3'd5);  // the choice above has four
  end

  // --- promises
  logic polled = 0, took = 0, had = 0;
  logic [15:0] domain_then = 0;
  always_ff @(posedge clk) begin
    polled <= !rst && load_poll && load_context == watched;
    had <= held != 0 && is_open;
    domain_then <= domain;
    took <= !rst && takes_word && word == 0 && left == {1'b0, chosen};
    if (!rst) begin
      // A poll shows a packet when there is one, and of the mailbox's domain.
      if (polled) assert (loaded[38] == had && (loaded != 0) == had);
      if (polled && had) assert (loaded[63:48] == domain_then);
      // What is read is what was sent, in its place: nothing is lost, doubled or torn.
      if (took) assert (loaded == first_word);
      // A mailbox never holds more than it has room for.
      assert (held <= 2);
      // A full mailbox that does not drop keeps its packet waiting.
      if (in_valid && in_head && is_for_watched && is_allowed && held == 2 && !drops)
        assert (!in_ready);
      // Words are counted as the mailbox counts them.
      if (takes_word) assert (last_word == leaves);
    end
  end
endmodule
