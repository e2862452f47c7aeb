// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/sim/simulation.hpp"
#include "towpath/sim/timer.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/core/ethernet_tile.hpp"
#include "towpath/tenstorrent/dispatch/host_routes.hpp"

namespace towpath::tenstorrent {

class Device;

// --- commands in the L1 of an Ethernet core -----------------------------------------------------
// A slot is a command of 32 bytes, the answer to it, and a buffer of 1 KiB. There are 4 for the
// host, 4 for the far end of the link and 16 for other cores of the chip, one for each data
// buffer. Commands are in the first 2 KiB of the command queue, answers in the second.

inline constexpr int kHostSlots = 4;
inline constexpr int kFirstEthernetSlot = 4;
inline constexpr int kFirstNocSlot = 8;
inline constexpr int kFirmwareSlots = 24;
inline constexpr std::uint64_t kSlotBytes = 1024;

// A byte has the same offset in a slot's buffer as in its target's kilobyte. This satisfies the
// NoC's alignment rules, and no access crosses a kilobyte.
struct FirmwareCommand {
  enum class Kind : std::uint32_t { read, write };
  std::uint32_t sequence = 0;  // increases with each command of a gateway
  Kind kind = Kind::read;
  std::int32_t chip = 0;  // target
  std::int32_t tile = 0;  // target's number on the chip
  std::uint64_t offset = 0;
  std::uint32_t size_bytes = 0;
  // Destination of the answer: a slot of a core on the same chip, or of the far end.
  std::uint16_t from_channel = 0;
  std::uint16_t from_slot = 0;
};
static_assert(sizeof(FirmwareCommand) == 32);

constexpr std::uint64_t command_at(int slot) {
  return ethernet_memory_map::kCommandQueueBase +
         static_cast<std::uint64_t>(slot) * sizeof(FirmwareCommand);
}
constexpr std::uint64_t answer_at(int slot) { return command_at(slot) + 2048; }
constexpr std::uint64_t data_at(int slot) {
  return ethernet_memory_map::kDataBufferBase + static_cast<std::uint64_t>(slot) * kSlotBytes;
}
static_assert(answer_at(0) >= command_at(kFirmwareSlots));
static_assert(answer_at(kFirmwareSlots) <= ethernet_memory_map::kDataBufferBase);
static_assert(data_at(kFirmwareSlots) == ethernet_memory_map::kBarrierBase);

// Firmware that runs on an Ethernet core if no kernel does, and for a turn when a kernel yields.
// Only its service for the host is modeled. It takes commands out of its slots and forwards them,
// over its link or over the NoC to the next core of the route. On the target's chip it reads or
// writes, and the answer returns by the same route. A write is answered when its bytes are in
// memory.
//
// It polls once in routing_firmware_cycles and does all pending work. A send costs send_cycles, and
// a request to the NoC costs the same as for a kernel. It releases the core with all its requests
// answered, and sends over the transmit queue that kernels do not use, if there is one.
//
// A command keeps the number of its slot at the gateway, and a slot on each core of its route,
// until it is answered. There is one route to each core, so a slot that is free at the gateway is
// free everywhere: no command overwrites another one or waits for room. Commands from a gateway to
// one chip are carried out in order.
class BaseFirmware final : public CoreFirmware {
 public:
  BaseFirmware(Device& device, EthernetTile& tile, const HostRoutes& routes);
  BaseFirmware(const BaseFirmware&) = delete;
  BaseFirmware& operator=(const BaseFirmware&) = delete;

  bool has_work() const override;
  EthernetTile& tile() const { return tile_; }

  void take_turn() override;
  void finish_look() override;
  void wake() override;

 private:
  enum class Stage : std::uint8_t { idle, to_do, forwarding, awaiting, answering };
  struct Slot {
    Stage stage = Stage::idle;
    bool has_data_to_send = false;
    FirmwareCommand command;
  };
  // Destination of a message: a slot at the far end of the link, or of another core of the chip.
  struct Destination {
    bool is_far_end = false;
    machine::Coordinate core;
    int slot = 0;
  };

  void run();
  void wait_for_look();
  void suspend_until(noc::Cycle due);
  void suspend_for_kernel();
  void look();
  void advance(int slot);
  void begin(int slot);
  bool forward(int slot);
  void do_access(int slot);
  bool is_new(int slot) const;
  bool is_answered(int slot) const;
  bool can_send(const Destination& to) const {
    return !to.is_far_end || !tile_.port().is_busy(queue());
  }
  Destination next_of(int slot) const;
  Destination previous_of(int slot) const;
  // Sends data, if any, then the command, to a command slot or answer slot. Returns false if the
  // transmit queue is busy.
  bool send(int slot, const Destination& to, bool is_answer);
  void send_part(std::uint64_t source, const Destination& to, std::uint64_t destination,
                 std::uint64_t size_bytes);
  int queue() const;

  Device& device_;
  EthernetTile& tile_;
  const HostRoutes& routes_;
  DataMovementCore core_;
  sim::Process* process_ = nullptr;
  sim::Process* kernel_ = nullptr;  // waits for its end
  bool has_turn_ = false;
  bool is_at_work_ = false;
  sim::Timer timer_;
  std::array<Slot, kFirmwareSlots> slots_{};
};

}  // namespace towpath::tenstorrent
