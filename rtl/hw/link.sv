// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// One direction of a link: a gearbox that serialises flits at the line's rate, and the latency of
// both transceivers and the cable. Rate and latency are inputs, so that one build serves each clock.
// Credits travel beside the flits, as the control characters of the line code do.
module link #(
    parameter int WIDTH = 131,
    parameter int CREDITS = 2,
    parameter int LATENCY_MAX = 512
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [9:0]         bits_per_cycle,
    input  logic [8:0]         latency_cycles,
    input  logic               in_valid,
    output logic               in_ready,
    input  logic [WIDTH-1:0]   in_data,
    input  logic [CREDITS-1:0] in_credits,
    output logic               out_valid,
    output logic [WIDTH-1:0]   out_data,
    output logic [CREDITS-1:0] out_credits
);
  // The gearbox: a flit has left when all its bits have.
  logic queue_valid, queue_pop;
  logic [WIDTH-1:0] queue_data;
  fifo #(.WIDTH(WIDTH), .DEPTH(2)) queue (
      .clk, .rst, .in_valid, .in_ready, .in_data,
      .out_valid(queue_valid), .out_ready(queue_pop), .out_data(queue_data)
  );

  localparam logic [10:0] FLIT = 11'(net::FLIT_BITS);
  logic [10:0] sent_bits, sum_bits;
  assign sum_bits  = sent_bits + {1'b0, bits_per_cycle};
  assign queue_pop = queue_valid && sum_bits >= FLIT;

  always_ff @(posedge clk) begin
    if (rst || !queue_valid) sent_bits <= '0;
    else if (queue_pop) sent_bits <= sum_bits - FLIT > FLIT ? FLIT : sum_bits - FLIT;
    else sent_bits <= sum_bits;
  end

  // The way: a delay line as a circular memory.
  localparam int ENTRY = WIDTH + 1 + CREDITS;
  localparam int BITS = $clog2(LATENCY_MAX);
  logic [ENTRY-1:0] way[LATENCY_MAX];
  logic [BITS-1:0] at;
  logic [BITS:0] filled;
  logic [ENTRY-1:0] arriving;
  wire [BITS-1:0] from = at - latency_cycles[BITS-1:0];

  always_ff @(posedge clk) begin
    way[at] <= {queue_pop, queue_data, in_credits};
    if (rst) begin
      at       <= '0;
      filled   <= '0;
      arriving <= '0;
    end else begin
      at <= at + 1'b1;
      if (!filled[BITS]) filled <= filled + 1'b1;
      arriving <= filled >= {1'b0, latency_cycles[BITS-1:0]} ? way[from] : '0;
    end
  end
  assign {out_valid, out_data, out_credits} = arriving;
endmodule
