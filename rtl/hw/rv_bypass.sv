// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A source register's value: from the nearest stage that will write it, or from the file.
module rv_bypass (
    input  logic [4:0]  rs,
    input  logic [63:0] file,
    input  logic        x_writes,
    input  logic [4:0]  x_rd,
    input  logic        x_is_late,  // its result is there one stage later
    input  logic [63:0] x_result,
    input  logic        m_writes,
    input  logic [4:0]  m_rd,
    input  logic        m_done,
    input  logic [63:0] m_result,
    input  logic        w_writes,
    input  logic [4:0]  w_rd,
    input  logic [63:0] w_value,
    output logic        is_missing,
    output logic [63:0] value
);
  always_comb begin
    is_missing = 1'b0;
    value = file;
    if (rs == 0) begin
      value = '0;
    end else if (x_writes && x_rd == rs) begin
      value = x_result;
      is_missing = x_is_late;
    end else if (m_writes && m_rd == rs) begin
      value = m_result;
      is_missing = !m_done;
    end else if (w_writes && w_rd == rs) begin
      value = w_value;
    end
  end
endmodule
