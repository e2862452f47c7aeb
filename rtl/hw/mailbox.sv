// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The mailboxes of a node, one per context: queues of packets in block memory. A load of POLL shows
// the first packet, or 0; each load of DATA takes the next word of its payload, and the last word
// takes the packet out.
//
// A packet enters only a mailbox that is open and of the sender's domain. Where there is no room it
// waits, and what comes behind it on the ring waits too, or it is dropped; the mailbox chooses.
// Each packet is answered by one notice, as soon as its header has been looked at: behind a header
// its payload comes for certain.
module mailbox #(
    parameter int CONTEXTS = 64,
    parameter int DEPTH = 64
) (
    input  logic                        clk,
    input  logic                        rst,
    input  logic [9:0]                  self,
    // Loads of a context's registers; data come a cycle later.
    input  logic                        load_poll,
    input  logic                        load_data,
    input  logic [$clog2(CONTEXTS)-1:0] load_context,
    output logic [63:0]                 loaded,
    output logic                        poll_hit,   // the poll of the last cycle saw a packet
    output logic                        last_word,  // this load takes a packet's last word
    // The supervisor opens and closes; what was in the mailbox is gone.
    input  logic                        set_valid,
    input  logic [$clog2(CONTEXTS)-1:0] set_context,
    input  logic                        set_open,
    input  logic                        set_drops,
    input  logic [15:0]                 set_domain,
    // Messages in.
    input  logic                        in_valid,
    output logic                        in_ready,
    input  logic                        in_head,
    input  logic                        in_tail,
    input  logic [net::FLIT_BITS-1:0]   in_data,
    // Notices out.
    output logic                        notice_valid,
    input  logic                        notice_ready,
    output logic [net::FLIT_BITS-1:0]   notice_data
);
  localparam int CONTEXT_BITS = $clog2(CONTEXTS);
  localparam int DEPTH_BITS = $clog2(DEPTH);
  localparam int FLITS = net::PAYLOAD_BYTES_MAX / net::FLIT_BYTES;
  localparam int FLIT_INDEX_BITS = $clog2(FLITS);

  logic is_open[CONTEXTS];
  logic drops[CONTEXTS];
  logic [15:0] domain[CONTEXTS];
  logic [DEPTH_BITS:0] written[CONTEXTS];  // packets ever, modulo twice the depth
  logic [DEPTH_BITS:0] taken[CONTEXTS];
  logic [2:0] word_index[CONTEXTS];
  initial begin
    for (int i = 0; i < CONTEXTS; i++) begin
      is_open[i] = 1'b0;
      drops[i] = 1'b0;
      domain[i] = '0;
      written[i] = '0;
      taken[i] = '0;
      word_index[i] = '0;
    end
  end

  // --- in
  net::header_t header;
  assign header = in_data;
  wire [CONTEXT_BITS-1:0] header_context = header.context_number[CONTEXT_BITS-1:0];
  wire exists = {1'b0, header.context_number} < 9'(CONTEXTS);
  wire is_allowed = exists && is_open[header_context] && domain[header_context] == header.domain;
  wire [DEPTH_BITS:0] waiting = written[header_context] - taken[header_context];
  wire is_full = waiting == DEPTH[DEPTH_BITS:0];
  wire must_wait = is_allowed && is_full && !drops[header_context];

  // The packet under way.
  logic is_kept;
  logic [CONTEXT_BITS-1:0] context_now;
  logic [FLIT_INDEX_BITS-1:0] flit_now;
  logic has_notice_space;
  assign in_ready = in_head ? has_notice_space && !must_wait : 1'b1;
  wire take = in_valid && in_ready;
  wire take_head = take && in_head;
  wire keep = is_allowed && !is_full;
  wire is_set_now = set_valid && set_context == context_now;
  wire commit = take && !in_head && in_tail && is_kept && !is_set_now;
  wire [DEPTH_BITS-1:0] write_slot = written[context_now][DEPTH_BITS-1:0];

  net::header_t notice;
  always_comb begin
    notice = '0;
    notice.kind = keep ? net::KIND_ACKNOWLEDGED : is_allowed ? net::KIND_FULL : net::KIND_REFUSED;
    notice.node = header.source_node;
    notice.context_number = header.source_context[7:0];
    notice.source_node = self;
    notice.source_context = {1'b0, header.context_number};
    notice.sequence_number = header.sequence_number;
  end
  fifo #(.WIDTH(net::FLIT_BITS), .DEPTH(8)) notices (
      .clk, .rst, .in_valid(take_head), .in_ready(has_notice_space), .in_data(notice),
      .out_valid(notice_valid), .out_ready(notice_ready), .out_data(notice_data)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      is_kept  <= 1'b0;
      flit_now <= '0;
    end else begin
      if (take_head) begin
        is_kept  <= keep && !(set_valid && set_context == header_context);
        flit_now <= '0;
      end else begin
        if (is_set_now) is_kept <= 1'b0;
        if (take) flit_now <= flit_now + 1'b1;
      end
      if (commit) written[context_now] <= written[context_now] + 1'b1;
      assert (!(take_head && in_tail));
    end
    if (take_head) context_now <= header_context;
    if (!rst && set_valid) begin
      is_open[set_context] <= set_open;
      drops[set_context]   <= set_drops;
      domain[set_context]  <= set_domain;
    end
  end

  // --- block memory: what polls show, and payloads
  localparam int SLOTS = CONTEXTS * DEPTH;
  localparam int SLOT_BITS = $clog2(SLOTS);
  logic [63:0] heads[SLOTS];
  logic [net::FLIT_BITS-1:0] payloads[SLOTS*FLITS];
  logic [2:0] last_words[SLOTS];  // index of the last word: in distributed memory

  wire [SLOT_BITS-1:0] head_row = {header_context, written[header_context][DEPTH_BITS-1:0]};
  wire [SLOT_BITS-1:0] write_row = {context_now, write_slot};
  wire [6:0] size_less_one = header.size_bytes - 7'd1;
  wire write_head = take_head && keep;
  wire write_payload = take && !in_head && is_kept;

  // --- out
  wire [DEPTH_BITS:0] taken_now = taken[load_context];
  wire has_packet = written[load_context] != taken_now;
  wire [SLOT_BITS-1:0] read_row = {load_context, taken_now[DEPTH_BITS-1:0]};
  wire [2:0] word = word_index[load_context];
  wire take_word = load_data && has_packet;
  assign last_word = take_word && word == last_words[read_row];

  logic [63:0] head_read;
  logic [net::FLIT_BITS-1:0] payload_read;
  logic was_poll, was_data, was_odd;
  always_ff @(posedge clk) begin
    if (write_head)
      heads[head_row] <= {header.domain, 1'b0, header.sequence_number, 1'b1, header.source_node,
                          header.source_context, 12'b0, header.size_bytes};
    head_read <= heads[read_row];
  end
  always_ff @(posedge clk) begin
    if (write_payload) payloads[{write_row, flit_now}] <= in_data;
    payload_read <= payloads[{read_row, word[2:1]}];
  end
  always_ff @(posedge clk) begin
    if (write_head) last_words[head_row] <= size_less_one[5:3];
  end

  always_ff @(posedge clk) begin
    was_poll <= !rst && load_poll && has_packet && is_open[load_context];
    was_data <= !rst && take_word;
    was_odd  <= word[0];
    if (!rst) begin
      if (set_valid) begin
        taken[set_context] <= written[set_context];
        word_index[set_context] <= '0;
      end else if (take_word) begin
        word_index[load_context] <= last_word ? '0 : word + 1'b1;
        if (last_word) taken[load_context] <= taken_now + 1'b1;
      end
      // A set and a load cannot come together: both are accesses of one core.
      assert (!(set_valid && (load_poll || load_data)));
      assert (waiting <= DEPTH[DEPTH_BITS:0]);
      assert (!(write_head && header.domain != domain[header_context]));
    end
  end
  assign poll_hit = was_poll;
  assign loaded = was_poll ? head_read
      : was_data ? (was_odd ? payload_read[127:64] : payload_read[63:0])
      : '0;
  wire unused = &{1'b0, header, size_less_one, 1'b0};
endmodule
