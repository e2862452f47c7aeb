// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The header of a packet, one flit of 128 bits, and what both ends of a link agree on.
package net;
  localparam int FLIT_BITS = 128;
  localparam int FLIT_BYTES = FLIT_BITS / 8;
  localparam int PAYLOAD_BYTES_MAX = 64;
  localparam int PACKET_FLITS_MAX = 1 + PAYLOAD_BYTES_MAX / FLIT_BYTES;

  localparam logic [3:0] KIND_MESSAGE = 0;
  localparam logic [3:0] KIND_ACKNOWLEDGED = 1;  // the message is in its mailbox, or will be
  localparam logic [3:0] KIND_FULL = 2;          // dropped: no room
  localparam logic [3:0] KIND_REFUSED = 3;       // dropped: no such mailbox, or of another domain

  typedef struct packed {
    logic [55:0] unused;
    logic [7:0]  sequence_number;
    logic [15:0] domain;
    logic [6:0]  size_bytes;
    logic [8:0]  source_context;
    logic [9:0]  source_node;
    logic [7:0]  context_number;
    logic [9:0]  node;
    logic [3:0]  kind;
  } header_t;

  // Flits of a packet whose payload has that many bytes.
  function automatic logic [3:0] flits_of(input logic [6:0] size_bytes);
    flits_of = 4'd1 + {1'b0, size_bytes[6:4]} + {3'b0, size_bytes[3:0] != 0};
  endfunction
endpackage
