// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Control and status registers, privilege, and where traps go.
module rv_csr (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] hart,
    input  logic [63:0] timer,
    input  logic        timer_interrupt,
    // Access of the instruction that completes.
    input  logic [11:0] address,
    input  logic        is_access,    // it reads or writes a register
    input  logic        is_write,
    input  logic [1:0]  operation,    // 1 write, 2 set, 3 clear
    input  logic [63:0] operand,
    output logic [63:0] value,
    output logic        is_illegal,
    input  logic        commit,       // the access takes effect
    input  logic        retire,
    // Traps and returns.
    input  logic        trap,
    input  logic        trap_is_interrupt,
    input  logic [3:0]  trap_cause,
    input  logic [63:0] trap_pc,
    input  logic [63:0] trap_value,
    input  logic        is_mret,
    input  logic        is_sret,
    input  logic        is_sfence,
    input  logic        is_wfi,
    output logic        return_is_illegal,
    output logic [63:0] trap_target,
    output logic [63:0] return_target,
    output logic        has_interrupt,
    output logic [3:0]  interrupt_cause,
    // What translation needs.
    output logic [1:0]  privilege,
    output logic [1:0]  data_privilege,
    output logic        sum,
    output logic        mxr,
    output logic        is_paged,
    output logic [43:0] root
);
  localparam logic [1:0] U = rv::PRIVILEGE_U, S = rv::PRIVILEGE_S, M = rv::PRIVILEGE_M;

  logic mie, mpie, sie, spie, spp, mprv, tvm, tw, tsr;
  logic [1:0] mpp;
  logic [15:0] medeleg;
  logic [11:0] mideleg, enabled, pending_set;
  logic [63:0] mtvec, mscratch, mepc, mcause, mtval, stvec, sscratch, sepc, scause, stval;
  logic [2:0] mcounteren, scounteren;
  logic [63:0] cycle, instret;

  localparam logic [11:0] S_BITS = 12'h222;
  localparam logic [11:0] ALL_BITS = 12'hAAA;
  wire [11:0] pending = pending_set | (timer_interrupt ? 12'h080 : 12'h000);
  wire [63:0] mstatus = {28'b0, 4'b1010, 9'b0, tsr, tw, tvm, mxr, sum, mprv, 4'b0, mpp, 2'b0, spp,
                         mpie, 1'b0, spie, 1'b0, mie, 1'b0, sie, 1'b0};
  wire [63:0] sstatus = mstatus & 64'h0000_0003_000D_E762;

  wire [7:0] counter = address[7:0];
  wire is_counter = address[11:5] == 7'b1100_000 && counter < 8'd3;
  wire counter_is_denied = is_counter && (
      (privilege != M && !mcounteren[counter[1:0]]) || (privilege == U && !scounteren[counter[1:0]]));

  logic exists;
  always_comb begin
    exists = 1'b1;
    value = '0;
    case (address)
      12'h100: value = sstatus;
      12'h104: value = {52'b0, enabled & mideleg};
      12'h105: value = stvec;
      12'h106: value = {61'b0, scounteren};
      12'h140: value = sscratch;
      12'h141: value = sepc;
      12'h142: value = scause;
      12'h143: value = stval;
      12'h144: value = {52'b0, pending & mideleg};
      12'h180: value = {is_paged ? 4'd8 : 4'd0, 16'b0, root};
      12'h300: value = mstatus;
      12'h301: value = 64'h8000_0000_0014_1105;  // RV64 A C I M S U
      12'h302: value = {48'b0, medeleg};
      12'h303: value = {52'b0, mideleg};
      12'h304: value = {52'b0, enabled};
      12'h305: value = mtvec;
      12'h306: value = {61'b0, mcounteren};
      12'h340: value = mscratch;
      12'h341: value = mepc;
      12'h342: value = mcause;
      12'h343: value = mtval;
      12'h344: value = {52'b0, pending};
      12'hB00, 12'hC00: value = cycle;
      12'hB02, 12'hC02: value = instret;
      12'hC01: value = timer;
      12'hF14: value = hart;
      12'hF11, 12'hF12, 12'hF13: value = '0;
      default: exists = 1'b0;
    endcase
  end
  wire is_read_only = address[11:10] == 2'b11;
  assign is_illegal = is_access && (!exists || address[9:8] > privilege || counter_is_denied
      || (is_write && is_read_only) || (address == 12'h180 && privilege == S && tvm));

  wire [63:0] written = operation == 2'd1 ? operand
      : operation == 2'd2 ? value | operand : value & ~operand;

  // --- traps
  wire [11:0] ready = pending & enabled;
  wire m_enabled = privilege != M || mie;
  wire s_enabled = privilege == U || (privilege == S && sie);
  wire [11:0] to_m = m_enabled ? ready & ~mideleg : '0;
  wire [11:0] to_s = s_enabled ? ready & mideleg : '0;
  wire [11:0] chosen = to_m != 0 ? to_m : to_s;
  assign has_interrupt = chosen != 0;
  assign interrupt_cause = chosen[11] ? 4'd11 : chosen[3] ? 4'd3 : chosen[7] ? 4'd7
      : chosen[9] ? 4'd9 : chosen[1] ? 4'd1 : 4'd5;
  wire [15:0] interrupt_delegated = {4'b0, mideleg};
  wire to_supervisor = privilege != M
      && (trap_is_interrupt ? interrupt_delegated[trap_cause] : medeleg[trap_cause]);
  wire [63:0] vector = to_supervisor ? stvec : mtvec;
  assign trap_target = {vector[63:2], 2'b0}
      + (vector[0] && trap_is_interrupt ? {58'b0, trap_cause, 2'b0} : 64'd0);
  assign return_target = is_mret ? mepc : sepc;
  assign return_is_illegal = (is_mret && privilege != M)
      || (is_sret && (privilege == U || (privilege == S && tsr)))
      || (is_sfence && (privilege == U || (privilege == S && tvm)))
      || (is_wfi && (privilege == U || (privilege == S && tw)));
  assign data_privilege = mprv ? mpp : privilege;

  wire write = commit && is_access && is_write;
  wire is_status = address == 12'h300 || address == 12'h100;
  always_ff @(posedge clk) begin
    if (rst) begin
      {mie, mpie, sie, spie, spp, mprv, sum, mxr, tvm, tw, tsr} <= '0;
      mpp <= U;
      privilege <= M;
      {medeleg, mideleg, enabled, pending_set, mcounteren, scounteren} <= '0;
      {mtvec, stvec, is_paged, root} <= '0;
      {mepc, mcause, mtval, sepc, scause, stval, mscratch, sscratch} <= '0;
      cycle <= '0;
      instret <= '0;
    end else begin
      cycle <= cycle + 1'b1;
      if (retire) instret <= instret + 1'b1;
      if (trap && to_supervisor) begin
        sepc <= trap_pc;
        scause <= {trap_is_interrupt, 59'b0, trap_cause};
        stval <= trap_value;
        spp <= privilege[0];
        spie <= sie;
        sie <= 1'b0;
        privilege <= S;
      end else if (trap) begin
        mepc <= trap_pc;
        mcause <= {trap_is_interrupt, 59'b0, trap_cause};
        mtval <= trap_value;
        mpp <= privilege;
        mpie <= mie;
        mie <= 1'b0;
        privilege <= M;
      end else if (commit && is_mret) begin
        privilege <= mpp;
        mie <= mpie;
        mpie <= 1'b1;
        mpp <= U;
        if (mpp != M) mprv <= 1'b0;
      end else if (commit && is_sret) begin
        privilege <= {1'b0, spp};
        sie <= spie;
        spie <= 1'b1;
        spp <= 1'b0;
        mprv <= 1'b0;
      end else if (write) begin
        if (is_status) begin
          sie  <= written[1];
          spie <= written[5];
          spp  <= written[8];
          sum  <= written[18];
          mxr  <= written[19];
        end
        case (address)
          12'h300: begin
            mie  <= written[3];
            mpie <= written[7];
            if (written[12:11] != 2'd2) mpp <= written[12:11];
            mprv <= written[17];
            tvm  <= written[20];
            tw   <= written[21];
            tsr  <= written[22];
          end
          12'h104: enabled <= (enabled & ~mideleg) | (written[11:0] & mideleg);
          12'h105: stvec <= {written[63:2], 1'b0, written[0]};
          12'h106: scounteren <= written[2:0];
          12'h140: sscratch <= written;
          12'h141: sepc <= {written[63:1], 1'b0};
          12'h142: scause <= written;
          12'h143: stval <= written;
          12'h144: if (mideleg[1]) pending_set[1] <= written[1];
          12'h180:
            if (written[63:60] == 0 || written[63:60] == 4'd8) begin
              is_paged <= written[63];
              root <= written[43:0];
            end
          12'h302: medeleg <= written[15:0] & 16'hB3FF;
          12'h303: mideleg <= written[11:0] & S_BITS;
          12'h304: enabled <= written[11:0] & ALL_BITS;
          12'h305: mtvec <= {written[63:2], 1'b0, written[0]};
          12'h306: mcounteren <= written[2:0];
          12'h340: mscratch <= written;
          12'h341: mepc <= {written[63:1], 1'b0};
          12'h342: mcause <= written;
          12'h343: mtval <= written;
          12'h344: pending_set <= written[11:0] & S_BITS;
          12'hB00: cycle <= written;
          12'hB02: instret <= written;
          default: ;
        endcase
      end
    end
  end
  wire unused = &{1'b0, vector[1], 1'b0};
endmodule
