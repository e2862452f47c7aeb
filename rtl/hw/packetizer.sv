// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The packetizer of a node. Each context has a few slots for payloads; stores of a payload's words
// and of a descriptor, back to back, make a packet. Packets leave in the order of their
// descriptors, the header before the payload.
//
// A context has at most SLOTS packets whose fate is not known. Stores beyond them do nothing, so
// that a packet on its way cannot be torn; a program looks at the counters first. A notice may come
// before the end of its packet has left; the packet is not settled before that.
module packetizer #(
    parameter int CONTEXTS = 64,
    parameter int SLOTS = 4
) (
    input  logic                        clk,
    input  logic                        rst,
    input  logic [9:0]                  self,
    // A context's registers, as its process stores and loads them; data of a load come a cycle later.
    input  logic                        store_word,
    input  logic                        store_descriptor,
    input  logic [$clog2(CONTEXTS)-1:0] store_context,
    input  logic [2:0]                  store_index,
    input  logic [63:0]                 store_data,
    output logic [63:0]                 counters,  // of store_context: {refused, full, settled, sent}
    // The supervisor gives a context to a domain.
    input  logic                        open_valid,
    input  logic [15:0]                 open_domain,
    // Packets out.
    output logic                        out_valid,
    input  logic                        out_ready,
    output logic                        out_head,
    output logic                        out_tail,
    output logic [net::FLIT_BITS-1:0]   out_data,
    // Notices in: what became of a packet.
    input  logic                        notice_valid,
    input  logic [net::FLIT_BITS-1:0]   notice_data
);
  localparam int CONTEXT_BITS = $clog2(CONTEXTS);
  localparam int SLOT_BITS = $clog2(SLOTS);
  localparam int FLITS = net::PAYLOAD_BYTES_MAX / net::FLIT_BYTES;
  localparam int FLIT_INDEX_BITS = $clog2(FLITS);

  // Packets sent by each context, and what is known of them. One writer each.
  logic [15:0] sent[CONTEXTS];
  logic [15:0] left[CONTEXTS];      // with their last flit
  logic [15:0] answered[CONTEXTS];  // by a notice
  logic [15:0] full[CONTEXTS];
  logic [15:0] refused[CONTEXTS];
  logic [15:0] domain[CONTEXTS];
  initial begin
    for (int i = 0; i < CONTEXTS; i++) begin
      sent[i] = '0;
      left[i] = '0;
      answered[i] = '0;
      full[i] = '0;
      refused[i] = '0;
      domain[i] = '0;
    end
  end

  wire [15:0] sent_now = sent[store_context];
  wire [15:0] left_now = left[store_context];
  wire [15:0] answered_now = answered[store_context];
  wire [15:0] ahead = answered_now - left_now;
  wire is_ahead = !ahead[15];
  wire [15:0] settled = is_ahead ? left_now : answered_now;
  wire [15:0] unsettled = sent_now - settled;
  wire has_room = unsettled < SLOTS[15:0];
  wire [SLOT_BITS-1:0] slot = sent_now[SLOT_BITS-1:0];
  wire [6:0] size_stored = store_data[38:32];
  wire is_packet = size_stored != 0 && size_stored <= 7'(net::PAYLOAD_BYTES_MAX);
  wire submit = store_descriptor && has_room && is_packet;

  // --- payloads: two banks of words, read a flit at a time
  localparam int ROWS = CONTEXTS * SLOTS * FLITS;
  localparam int ROW_BITS = $clog2(ROWS);
  logic [63:0] even[ROWS];
  logic [63:0] odd[ROWS];
  logic [63:0] even_read, odd_read;
  logic [ROW_BITS-1:0] read_row;
  logic read_payload;
  wire [ROW_BITS-1:0] write_row = {store_context, slot, store_index[2:1]};
  wire write_even = store_word && has_room && !store_index[0];
  wire write_odd = store_word && has_room && store_index[0];
  always_ff @(posedge clk) begin
    if (write_even) even[write_row] <= store_data;
    if (read_payload) even_read <= even[read_row];
  end
  always_ff @(posedge clk) begin
    if (write_odd) odd[write_row] <= store_data;
    if (read_payload) odd_read <= odd[read_row];
  end

  // --- descriptors that wait, in their order
  localparam int ENTRY = CONTEXT_BITS + SLOT_BITS + 8 + 7 + 8 + 10;
  logic queue_valid, queue_ready, queue_has_space;
  logic [ENTRY-1:0] queue_out;
  fifo #(.WIDTH(ENTRY), .DEPTH(CONTEXTS * SLOTS)) queue (
      .clk, .rst, .in_valid(submit), .in_ready(queue_has_space),
      .in_data({store_context, slot, sent_now[7:0], size_stored, store_data[23:16],
                store_data[9:0]}),
      .out_valid(queue_valid), .out_ready(queue_ready), .out_data(queue_out)
  );

  // --- forming: the header is a packet's first beat, the flits of its payload the others
  logic form_valid;
  logic [CONTEXT_BITS-1:0] form_context;
  logic [SLOT_BITS-1:0] form_slot;
  logic [7:0] form_sequence, form_to_context;
  logic [9:0] form_to_node;
  logic [6:0] form_size;
  logic [3:0] beat;

  wire issue = form_valid && (!out_valid || out_ready);
  wire last_beat = beat + 4'd1 == net::flits_of(form_size);
  wire [3:0] flit = beat - 4'd1;
  assign read_row = {form_context, form_slot, flit[FLIT_INDEX_BITS-1:0]};
  assign read_payload = issue && beat != 0;
  assign queue_ready = !form_valid || (issue && last_beat);

  net::header_t header, out_header;
  always_comb begin
    header = '0;
    header.kind = net::KIND_MESSAGE;
    header.node = form_to_node;
    header.context_number = form_to_context;
    header.source_node = self;
    header.source_context = 9'(form_context);
    header.size_bytes = form_size;
    header.domain = domain[form_context];
    header.sequence_number = form_sequence;
  end
  assign out_data = out_head ? out_header : {odd_read, even_read};

  always_ff @(posedge clk) begin
    if (rst) begin
      form_valid <= 1'b0;
      out_valid  <= 1'b0;
      beat       <= '0;
    end else begin
      if (queue_valid && queue_ready) form_valid <= 1'b1;
      else if (issue && last_beat) form_valid <= 1'b0;
      if (issue) beat <= last_beat ? '0 : beat + 1'b1;
      out_valid <= issue || (out_valid && !out_ready);
      assert (!(submit && !queue_has_space));
    end
    if (issue) begin
      out_head   <= beat == 0;
      out_tail   <= last_beat;
      out_header <= header;
    end
    if (queue_valid && queue_ready)
      {form_context, form_slot, form_sequence, form_size, form_to_context, form_to_node}
          <= queue_out;
  end

  // --- what becomes of packets
  net::header_t notice;
  assign notice = notice_data;
  wire [CONTEXT_BITS-1:0] notice_context = notice.context_number[CONTEXT_BITS-1:0];
  wire [15:0] answered_next = answered[notice_context] + 1'b1;
  wire [15:0] in_flight = sent[notice_context] - answered[notice_context];

  always_ff @(posedge clk) begin
    counters <= {refused[store_context], full[store_context], settled, sent_now};
    if (!rst && submit) sent[store_context] <= sent_now + 1'b1;
    if (!rst && open_valid) domain[store_context] <= open_domain;
    if (!rst && issue && last_beat) left[form_context] <= left[form_context] + 1'b1;
    if (!rst && notice_valid) begin
      answered[notice_context] <= answered_next;
      if (notice.kind == net::KIND_FULL) full[notice_context] <= full[notice_context] + 1'b1;
      if (notice.kind == net::KIND_REFUSED)
        refused[notice_context] <= refused[notice_context] + 1'b1;
      assert (in_flight != 0 && in_flight <= SLOTS[15:0]);
    end
  end
  wire unused = &{1'b0, queue_has_space, store_data[63:39], store_data[31:24], store_data[15:10],
                  flit[3:FLIT_INDEX_BITS], notice, ahead, 1'b0};
endmodule
