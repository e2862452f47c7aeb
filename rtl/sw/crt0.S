// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
//
// Entry of the supervisor, which runs in M, and of its traps: the registers of a process are in its
// frame, whose address is in mscratch while the process runs.

  .section .text.entry, "ax"
  .global _start
_start:
  la sp, supervisor_stack_end
  la t0, trap_entry
  csrw mtvec, t0
  call supervisor
1: j 1b

  .macro each_register instruction
  .irp n, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  \instruction x\n, 8 * \n(a0)
  .endr
  .endm

  .align 2
trap_entry:
  csrrw a0, mscratch, a0
  each_register sd
  sd x2, 16(a0)
  csrr t0, mscratch
  sd t0, 80(a0)
  csrr t0, mepc
  sd t0, 0(a0)
  la sp, supervisor_stack_end
  call on_trap

  .global resume
resume:  // a0: the frame of the process that goes on
  csrw mscratch, a0
  ld t0, 0(a0)
  csrw mepc, t0
  ld x2, 16(a0)
  each_register ld
  ld a0, 80(a0)
  mret
