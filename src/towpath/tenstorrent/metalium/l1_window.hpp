// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Host memory at the addresses that a kernel takes for its L1 and its registers, so that a pointer
// made from such an address can be followed. There is one window in the process, and it keeps
// nothing: a kernel calls out before each access, the bytes of its core are copied in, and what it
// has stored is copied out at its next call. So every core has the same window, no page is remapped
// when the simulator changes from one core to the other, and the memory of a core stays where the
// networks find it.
//
// A thread that runs such kernels holds the window. Others wait for it.

namespace towpath::tenstorrent::metalium {

class L1Window {
 public:
  // Takes the window for this thread. A thread may take it several times. Throws std::runtime_error
  // when the system does not map the addresses.
  L1Window();
  ~L1Window();
  L1Window(const L1Window&) = delete;
  L1Window& operator=(const L1Window&) = delete;

  static bool is_l1(std::uintptr_t address) { return address < kL1End; }
  static bool is_register(std::uintptr_t address) {
    return address >= kRegisterBase && address < kRegisterBase + kRegisterBytes;
  }
  // Lowest mapped address.
  static std::uintptr_t l1_begin();
  // The bytes at an address of the window.
  static std::span<std::byte> bytes(std::uintptr_t address, std::size_t size_bytes) {
    return {reinterpret_cast<std::byte*>(address), size_bytes};
  }

  // No L1 is larger, and programs start at 4 MiB or above.
  static constexpr std::uintptr_t kL1End = 0x200000;
  // Registers of the debug block, with the wall clock (tt-isa-documentation,
  // TensixTile/TDM_RISC_and_DebugRegisters).
  static constexpr std::uintptr_t kRegisterBase = 0xffb12000;
  static constexpr std::size_t kRegisterBytes = 0x1000;
};

}  // namespace towpath::tenstorrent::metalium
