// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// What a kernel in source form and the simulator know of each other: one table of C functions. The
// headers beside this file turn the calls of TT-Metalium into calls of the table; nothing else of
// the simulator is visible to a kernel.
//
// A NoC address is x << 36 | y << 42 | offset, a rectangle has its first corner at bits 48 and 54
// and its last where an address has x and y. Coordinates are those of NoC 0 on either NoC. Bit 60 is
// part of an address of the host where the chip has its host there.

#define TOWPATH_COORDINATE_SHIFT 36
#define TOWPATH_COORDINATE_BITS 6
#define TOWPATH_HOST_BIT 60
#define TOWPATH_ARGUMENTS_MAX 1024
// Where a worker's packet headers are in L1, and the size of one as kernels have it, on a line and
// on a mesh.
#define TOWPATH_PACKET_HEADERS 0x10400
#define TOWPATH_LINE_HEADER_BYTES 64
#define TOWPATH_MESH_HEADER_BYTES 96

typedef struct TowpathOptions {
  int32_t noc;
  int32_t vc;
  uint32_t flags;         // of TowpathFlag
  uint32_t id;            // transaction id, of the calls with one
  uint32_t destinations;  // of a multicast
} TowpathOptions;

enum TowpathFlag {
  kTowpathPosted = 1,
  kTowpathOnePacket = 2,
  kTowpathLinked = 4,
  kTowpathLoopback = 8,
  kTowpathWord = 16,  // a semaphore's value
};

enum TowpathBarrier {
  kTowpathReads,
  kTowpathWrites,
  kTowpathWritesFlushed,
  kTowpathPostedWritesFlushed,
  kTowpathAtomics,
  kTowpathEverything,
  kTowpathReadsOfId,
  kTowpathWritesOfId,
  kTowpathWritesFlushedOfId,
};

// kTowpathAligned: by an instruction that needs an aligned address.
enum TowpathAccess { kTowpathStore = 1, kTowpathVolatile = 2, kTowpathAligned = 4 };

enum TowpathPointer { kTowpathReadPointer, kTowpathWritePointer, kTowpathFirstPointer };

enum TowpathEthernetCall {
  kTowpathTxqIsBusy,
  kTowpathRunRouting,
  kTowpathContextSwitch,
  kTowpathReadBarrier,
  kTowpathWriteBarrier,
  kTowpathIsSendAcked,
  kTowpathIsSendDone,
  kTowpathBytesAreAvailable,
  // One-shots and waits.
  kTowpathSendBytes,
  kTowpathWaitForReceiverDone,
  kTowpathSendDone,
  kTowpathWaitReceiverDone,
  kTowpathWaitForBytes,
  kTowpathReceiverDone,
  kTowpathReceiverAcknowledge,
  kTowpathWaitReceiverAcknowledge,
  kTowpathWaitForChannelDone,
  kTowpathWaitForBytesOnChannel,
  kTowpathSemaphoreWait,
  kTowpathSemaphoreWaitMin,
  kTowpathLastWait = kTowpathSemaphoreWaitMin,
  // Queues and channels.
  kTowpathSendPacket,
  kTowpathSendPacketUnsafe,
  kTowpathWriteRemoteRegister,
  kTowpathSendBytesOverChannel,
  kTowpathSendPayloadOnly,
  kTowpathSendPayloadComplete,
  kTowpathClearSenderAck,
  kTowpathChannelAck,
  kTowpathChannelDone,
};

// Of a number as text.
typedef struct TowpathForm {
  int32_t width;
  int32_t digits;
  int32_t base;
  int32_t is_fixed;
} TowpathForm;

// A packet for the fabric, as its header says.
enum TowpathPacketAction {
  kTowpathPacketWrites = 1,
  kTowpathPacketIncrements = 2,
  kTowpathPacketFlushes = 4,   // before it increments
  kTowpathPacketScatters = 8,  // what it writes
  kTowpathPacketSetsWord = 16,
};
enum TowpathRoute {
  kTowpathAlongLine,      // hops: to the first chip, number of chips
  kTowpathToChip,         // hops: number of the chip
  kTowpathToRectangle,    // hops: to the east, west, north, south
};
typedef struct TowpathPacket {
  uint32_t action;
  uint32_t payload_bytes;
  uint64_t to[4];      // of each part of the payload
  uint32_t bytes[4];
  uint64_t word;
  uint32_t value;
  uint32_t route;
  uint32_t hops[4];
} TowpathPacket;

// The calls: result, name, parameters. Addresses of 64 bits are NoC addresses, of 32 bits offsets in
// the core's own L1.
#define TOWPATH_CALLS(CALL)                                                                       \
  CALL(void, read, (void* core, uint64_t from, uint32_t to, uint32_t size,                        \
       TowpathOptions options))                                                                   \
  CALL(void, read_set_state, (void* core, uint64_t from, uint32_t size, TowpathOptions options))  \
  CALL(void, read_with_state, (void* core, uint32_t from, uint32_t to, uint32_t size,             \
       TowpathOptions options))                                                                   \
  CALL(void, read_with_id, (void* core, uint64_t from, uint32_t to, uint32_t id,                  \
       TowpathOptions options))                                                                   \
  CALL(void, write, (void* core, uint32_t from, uint64_t to, uint32_t size,                       \
       TowpathOptions options))                                                                   \
  CALL(void, write_set_state, (void* core, uint64_t to, uint32_t size, TowpathOptions options))   \
  CALL(void, write_with_state, (void* core, uint32_t from, uint32_t to, uint32_t size,            \
       TowpathOptions options))                                                                   \
  CALL(void, write_with_id, (void* core, uint32_t from, uint64_t to, uint32_t size,               \
       TowpathOptions options))                                                                   \
  CALL(void, write_with_id_set_state, (void* core, uint64_t to, TowpathOptions options))          \
  CALL(void, write_with_id_with_state, (void* core, uint32_t from, uint32_t to,                   \
       uint32_t size, TowpathOptions options))                                                    \
  CALL(void, multicast, (void* core, uint32_t from, uint64_t to, uint32_t size,                   \
       TowpathOptions options))                                                                   \
  CALL(void, inline_write, (void* core, uint64_t to, uint32_t value, TowpathOptions options))     \
  CALL(void, inline_write_set_state, (void* core, uint64_t to, TowpathOptions options))           \
  /* An offset of all ones leaves what set_state has set. */                                      \
  CALL(void, inline_write_with_state, (void* core, uint32_t value, uint32_t to,                   \
       TowpathOptions options))                                                                   \
  CALL(void, set_id, (void* core, int is_read, uint32_t id, int32_t noc))                         \
  CALL(void, reset_ids, (void* core, uint32_t mask, int32_t noc))                                 \
  CALL(void, barrier, (void* core, int barrier, uint32_t id, int32_t noc))                        \
  /* One look at what a barrier of an id waits for. */                                            \
  CALL(int, has_passed, (void* core, int barrier, uint32_t id, int32_t noc))                      \
  /* Semaphores: words of L1. */                                                                  \
  CALL(void, semaphore_wait, (void* core, uint32_t offset, uint32_t value, int is_minimum))       \
  CALL(void, semaphore_set, (void* core, uint32_t offset, uint32_t value))                        \
  CALL(void, semaphore_inc, (void* core, uint64_t to, uint32_t increment,                         \
       TowpathOptions options))                                                                   \
  CALL(void, semaphore_inc_multicast, (void* core, uint64_t to, uint32_t increment,               \
       uint32_t destinations, TowpathOptions options))                                            \
  CALL(void, semaphore_set_remote, (void* core, uint32_t from, uint64_t to,                       \
       TowpathOptions options))                                                                   \
  /* Circular buffers. */                                                                         \
  CALL(void, cb_reserve_back, (void* core, uint32_t buffer, uint32_t pages))                      \
  CALL(void, cb_push_back, (void* core, uint32_t buffer, uint32_t pages))                         \
  CALL(void, cb_wait_front, (void* core, uint32_t buffer, uint32_t pages))                        \
  CALL(void, cb_pop_front, (void* core, uint32_t buffer, uint32_t pages))                         \
  CALL(int, cb_are_pages, (void* core, uint32_t buffer, uint32_t pages, int at_front))            \
  CALL(uint32_t, cb_pointer, (void* core, uint32_t buffer, int pointer))                          \
  CALL(uint32_t, cb_page_bytes, (void* core, uint32_t buffer))                                    \
  CALL(uint32_t, cb_pages, (void* core, uint32_t buffer))                                         \
  /* The Ethernet interface: a call with up to six arguments. */                                  \
  CALL(uint32_t, ethernet, (void* core, int call, const uint32_t* arguments))                     \
  /* The fabric: connections are named by the Ethernet channel of their router. */                \
  CALL(void, fabric_open, (void* core, uint32_t channel))                                         \
  CALL(void, fabric_close, (void* core, uint32_t channel))                                        \
  CALL(int, fabric_has_slot, (void* core, uint32_t channel))                                      \
  CALL(void, fabric_wait_for_slot, (void* core, uint32_t channel))                                \
  CALL(void, fabric_write_payload, (void* core, uint32_t channel, uint32_t from, uint32_t size))  \
  CALL(void, fabric_send, (void* core, uint32_t channel, const TowpathPacket* packet))            \
  /* Directions: east, west, north, south. */                                                     \
  CALL(uint32_t, fabric_direction, (void* core, uint32_t channel))                                \
  CALL(uint32_t, fabric_direction_to, (void* core, uint32_t chip))                                \
  /* A load or store of L1 or of a register that the kernel is going to carry out by a pointer, or \
     one of memory that is not its own. `place` is behind its instruction. */                     \
  CALL(void, access, (void* core, uintptr_t address, uint32_t size, uint32_t access,              \
       const void* place))                                                                        \
  /* The same for a whole block; the caller copies it afterwards through `host`. A `place` of 0 is \
     that of the call. */                                                                         \
  CALL(void, load, (void* core, uint32_t offset, void* host, uint32_t size, const void* place))   \
  CALL(void, store, (void* core, uint32_t offset, const void* host, uint32_t size,                \
       const void* place))                                                                        \
  CALL(uint64_t, cycle, (void* core))                                                             \
  CALL(void, work, (void* core, uint64_t cycles))                                                 \
  CALL(void, print, (void* core, const char* text))                                               \
  /* Writes a number as text of less than `size` bytes. */                                        \
  CALL(void, write_real, (void* core, char* text, uint32_t size, TowpathForm form, double value)) \
  CALL(void, write_whole, (void* core, char* text, uint32_t size, TowpathForm form,               \
       int64_t value))                                                                            \
  CALL(void, zone, (void* core, const char* name, int begins))                                    \
  CALL(void, record, (void* core, const char* name, uint64_t value))                              \
  /* So many blocks of instructions have run; `place` is behind the last one's begin. */          \
  CALL(void, ran, (void* core, uint64_t blocks, const void* place))                               \
  /* It has come to a loop without an exit and without a call; `place` is behind its begin. */    \
  CALL(void, endless_loop, (void* core, const void* place))                                       \
  /* A function that ends at `place` has written beyond its variables on the stack. */            \
  CALL(void, smashed_stack, (void* core, const void* place))                                      \
  /* It uses an element that an array of this type does not have. */                              \
  CALL(void, beyond_array, (void* core, uint64_t index, const char* type, const void* place))     \
  /* The kernel makes a compute call that is not modelled. */                                     \
  CALL(void, refuse_compute, (void* core, const char* call))                                      \
  /* Ends the run with a sentence. */                                                             \
  CALL(void, refuse, (void* core, const char* sentence))

typedef struct TowpathCalls {
#define TOWPATH_CALL_MEMBER(result, name, parameters) result(*name) parameters;
  TOWPATH_CALLS(TOWPATH_CALL_MEMBER)
#undef TOWPATH_CALL_MEMBER
} TowpathCalls;

typedef struct TowpathCore {
  const TowpathCalls* calls;
  void* core;
  uint32_t x, y;                  // NoC 0
  uint32_t logical_x, logical_y;
  uint32_t semaphore_base[2];     // of workers, of Ethernet cores
  const uint32_t* arguments;
  uint32_t argument_count;
  const uint32_t* common_arguments;
  uint32_t common_argument_count;
  const uint64_t* dram_banks;     // NoC address of the first byte of each
  uint32_t dram_bank_count;
  const uint64_t* l1_banks;
  uint32_t l1_bank_count;
  uint32_t stack_bytes;
} TowpathCore;

// What a compiled kernel exports.
#define TOWPATH_KERNEL_ENTRY towpath_kernel_entry
