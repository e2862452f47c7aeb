// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The supervisor of a node. It gives processes address spaces of their own (Sv39) and contexts of
// the network interface, which it maps into them, serves the timer, and turns to a second process
// now and then. Memory of the array of results is there when it is touched first.

#include <stddef.h>
#include <stdint.h>

#include "program.h"
#include "system.h"

#define READ_CSR(name)                                       \
  ({                                                         \
    uint64_t value_;                                         \
    __asm__ volatile("csrr %0, " #name : "=r"(value_));      \
    value_;                                                  \
  })
#define WRITE_CSR(name, value) __asm__ volatile("csrw " #name ", %0" ::"r"((uint64_t)(value)))

#define INTERFACE 0x40000000UL
#define CONTROL ((volatile uint64_t *)(INTERFACE + 0x800000))
#define TIMER ((volatile uint64_t *)(INTERFACE + 0x1000000))

enum {
  PAGE_BYTES = 4096,
  CONTEXTS = 64,
  PROCESSES = 2,
  TABLES = 48,
  RESULT_BYTES = RESULTS_MAX * 8,
  CAUSE_ECALL = 8,
  CAUSE_LOAD_PAGE = 13,
  CAUSE_STORE_PAGE = 15,
};
enum { VALID = 1, READ = 2, WRITE = 4, EXECUTE = 8, USER = 16, ACCESSED = 64, DIRTY = 128 };
enum { INTERFACE_TIME, INTERFACE_TIME_COMPARE, INTERFACE_EXIT, INTERFACE_PRINT };

struct frame {
  uint64_t registers[32];  // [0] is the program counter
};

struct process {
  struct frame frame;
  uint64_t *root;
  int is_ready;
};

// What of the memory is whose (link.ld).
extern char user_text[], user_text_end[], user_data[], user_data_end[];
extern char user_stack[], user_stack_end[], background_stack[], background_stack_end[];
extern void resume(struct frame *frame) __attribute__((noreturn));
extern uint64_t arguments[ARGUMENT_COUNT];
void start_program(void);
void run_background(void);

uint64_t results[RESULTS_MAX] __attribute__((aligned(4096)));

static uint64_t tables[TABLES][PAGE_BYTES / 8] __attribute__((aligned(4096)));
static unsigned tables_used;
static struct process processes[PROCESSES];
static struct process *current;
static signed char context_owner[CONTEXTS];  // process + 1; 0: none
static uint64_t ticks;
static uint64_t next_tick;

static void print(const char *text) {
  while (*text != 0) TIMER[INTERFACE_PRINT] = (uint64_t)*text++;
}

static __attribute__((noreturn)) void stop(uint64_t code) {
  TIMER[INTERFACE_EXIT] = code;
  for (;;) {
  }
}

static __attribute__((noreturn)) void fail(const char *what) {
  print(what);
  stop(255);
}

// --- address spaces

static uint64_t *new_table(void) {
  if (tables_used == TABLES) fail("no page tables are left\n");
  return tables[tables_used++];
}

static uint64_t *entry_of(uint64_t *root, uint64_t address) {
  uint64_t *table = root;
  for (int level = 2; level > 0; --level) {
    uint64_t *const entry = &table[address >> (12 + 9 * level) & 511];
    if ((*entry & VALID) == 0) *entry = (uint64_t)new_table() >> 12 << 10 | VALID;
    table = (uint64_t *)(*entry >> 10 << 12);
  }
  return &table[address >> 12 & 511];
}

static void map(uint64_t *root, uint64_t address, uint64_t frame, uint64_t flags) {
  *entry_of(root, address) = frame >> 12 << 10 | flags | VALID | USER | ACCESSED | DIRTY;
}

static void map_range(uint64_t *root, const char *begin, const char *end, uint64_t flags) {
  for (uint64_t at = (uint64_t)begin; at < (uint64_t)end; at += PAGE_BYTES)
    map(root, at, at, flags);
}

static void flush_translations(void) { __asm__ volatile("sfence.vma" ::: "memory"); }

// --- processes

static void make_process(struct process *process, void (*entry)(void), char *stack,
                         char *stack_end) {
  process->root = new_table();
  map_range(process->root, user_text, user_text_end, READ | EXECUTE);
  map_range(process->root, user_data, user_data_end, READ | WRITE);
  map_range(process->root, stack, stack_end, READ | WRITE);
  process->frame.registers[0] = (uint64_t)entry;
  process->frame.registers[2] = (uint64_t)stack_end;
  process->is_ready = 1;
}

static void run(struct process *process) {
  if (process == current) return;
  current = process;
  WRITE_CSR(satp, 8UL << 60 | (uint64_t)process->root >> 12);
  flush_translations();
}

// --- contexts of the network interface

static void set_context(int number, int domain, int is_open) {
  CONTROL[0] = (uint64_t)(uint16_t)domain << 32 | (uint64_t)is_open << 16 | (uint64_t)number;
}

static long open_context(int domain) {
  for (int number = 0; number < CONTEXTS; ++number) {
    if (context_owner[number] != 0) continue;
    context_owner[number] = (signed char)(current - processes + 1);
    set_context(number, domain, 1);
    const uint64_t page = (uint64_t)number << 12;
    map(current->root, CONTEXT_PAGES + page, INTERFACE + page, READ | WRITE);
    flush_translations();
    return number;
  }
  return -1;
}

static long close_context(int number) {
  if (number < 0 || number >= CONTEXTS || context_owner[number] != current - processes + 1)
    return -1;
  context_owner[number] = 0;
  set_context(number, 0, 0);
  *entry_of(current->root, CONTEXT_PAGES + ((uint64_t)number << 12)) = 0;
  flush_translations();
  return 0;
}

// --- traps

static long serve(uint64_t number, uint64_t a) {
  switch (number) {
    case SYSTEM_EXIT: stop(a);
    case SYSTEM_OPEN: return open_context((int)a);
    case SYSTEM_CLOSE: return close_context((int)a);
    case SYSTEM_NODE: return (long)(CONTROL[1] & 0x3FF);
    case SYSTEM_NODES: return (long)(CONTROL[1] >> 32 & 0x3FF);
    case SYSTEM_PRINT: TIMER[INTERFACE_PRINT] = a; return 0;
    case SYSTEM_YIELD:
      current->is_ready = 0;
      run(&processes[0]);
      return 0;
    default: return -1;
  }
}

static void on_page_fault(void) {
  const uint64_t offset = READ_CSR(mtval) - RESULT_PAGES;
  if (offset >= RESULT_BYTES || current != &processes[0]) fail("a process touched what is not its own\n");
  const uint64_t page = offset & ~(uint64_t)(PAGE_BYTES - 1);
  map(current->root, RESULT_PAGES + page, (uint64_t)results + page, READ | WRITE);
  flush_translations();
}

static void on_tick(void) {
  const uint64_t every = arguments[ARGUMENT_BACKGROUND_TICKS];
  next_tick += arguments[ARGUMENT_TICK_CYCLES];
  TIMER[INTERFACE_TIME_COMPARE] = next_tick;
  ++ticks;
  if (every != 0 && ticks % every == 0) processes[1].is_ready = 1;
  run(&processes[processes[1].is_ready ? 1 : 0]);
}

struct frame *on_trap(struct frame *frame) {
  const uint64_t cause = READ_CSR(mcause);
  if ((int64_t)cause < 0) {
    on_tick();
  } else if (cause == CAUSE_ECALL) {
    frame->registers[0] += 4;
    const long answer = serve(frame->registers[17], frame->registers[10]);
    frame->registers[10] = (uint64_t)answer;
  } else if (cause == CAUSE_LOAD_PAGE || cause == CAUSE_STORE_PAGE) {
    on_page_fault();
  } else {
    fail("a process met an exception\n");
  }
  return &current->frame;
}

void supervisor(void) {
  make_process(&processes[0], start_program, user_stack, user_stack_end);
  make_process(&processes[1], run_background, background_stack, background_stack_end);
  processes[1].is_ready = 0;
  run(&processes[0]);
  WRITE_CSR(mcounteren, 7);
  WRITE_CSR(scounteren, 7);
  WRITE_CSR(mstatus, 0);  // mret goes to U, where interrupts are taken
  if (arguments[ARGUMENT_TICK_CYCLES] != 0) {
    // Nodes do not tick together.
    next_tick = TIMER[INTERFACE_TIME] + arguments[ARGUMENT_TICK_CYCLES]
        + (CONTROL[1] & 0x3FF) * 7919;
    TIMER[INTERFACE_TIME_COMPARE] = next_tick;
    WRITE_CSR(mie, 0x80);
  }
  resume(&current->frame);
}
