// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/host/pci_endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace towpath::tenstorrent {

// Sources: tt-isa-documentation, PCIExpressTile/TLBs.md of both chips, and tt-umd.
struct PciLayout {
  std::string_view architecture;
  std::uint32_t device_id;
  int address_bits;  // of NoC addresses: a window's register holds the bits above its size
  std::uint64_t window_register_bytes;
  std::uint64_t translation_offset;  // of the host's address translation in BAR 2
};

namespace {

constexpr PciLayout kLayouts[] = {
    {"wormhole_b0", 0x401E, 36, 8, 0x1200},
    {"blackhole", 0xB140, 64, 12, 0x1000},
};
constexpr std::uint32_t kVendorId = 0x1E52;
constexpr std::uint64_t kBar0Bytes = 512 << 20;
constexpr std::uint64_t kWindowRegisters = 0x1FC0'0000;  // in BAR 0
constexpr int kCoordinateBits = 6;
// A region of host memory has 0x200 bytes of registers, and there are 16.
constexpr std::uint64_t kTranslationBytes = 16 * 0x200;
// Configuration of the PCIe tile's interface to NoC 0, in BAR 0 of Blackhole. 0 includes
// untranslated coordinates.
constexpr std::uint64_t kNocConfiguration = 0x1FD0'4100;
// Distance between BARs, so that they do not overlap.
constexpr int kBarShift = 40;
constexpr int kBars = 6;
// Attributes of a BAR: memory, 64 bits.
constexpr std::uint32_t kBarAttributes = 4;
constexpr std::uint32_t kFirstBarRegister = 0x10;

const PciLayout& layout_of(const machine::Chip& chip) {
  for (const PciLayout& layout : kLayouts) {
    if (layout.architecture == chip.architecture) return layout;
  }
  throw std::invalid_argument(
      fmt::format("the registers of chip '{}' are unknown; its architecture must be "
                  "wormhole_b0 or blackhole",
                  chip.name));
}

// Bits of a register, little-endian, at most 128.
class Bits {
 public:
  explicit Bits(std::span<const std::byte> bytes) {
    std::memcpy(&value_, bytes.data(), bytes.size());
  }
  std::uint64_t take(int count) {
    const unsigned __int128 mask = (static_cast<unsigned __int128>(1) << count) - 1;
    const auto taken = static_cast<std::uint64_t>(value_ & mask);
    value_ >>= count;
    return taken;
  }
  bool are_left() const { return value_ != 0; }

 private:
  unsigned __int128 value_ = 0;
};

}  // namespace

PciEndpoint::PciEndpoint(HostCluster& cluster, int chip)
    : cluster_(cluster), chip_(chip), layout_(layout_of(cluster.chip(chip))) {
  std::uint64_t next[kBars] = {};
  for (const machine::WindowSize& size : cluster.chip(chip).pcie.windows) {
    // Windows larger than BAR 0 are in BAR 4.
    const int bar = size.size_bytes < kBar0Bytes ? 0 : 4;
    for (int n = 0; n < size.count; ++n) {
      windows_.push_back({bar, next[bar], size.size_bytes, n >= size.count - size.reserved});
      next[bar] += size.size_bytes;
    }
  }
  window_registers_.resize(windows_.size() * layout_.window_register_bytes);
  translation_registers_.resize(kTranslationBytes);
}

std::uint64_t PciEndpoint::bar(int number) {
  return static_cast<std::uint64_t>(number + 1) << kBarShift;
}

std::uint32_t PciEndpoint::configuration(std::uint32_t offset) const {
  if (offset == 0) return layout_.device_id << 16 | kVendorId;
  if (offset < kFirstBarRegister || offset % 4 != 0) return 0;
  const std::uint32_t word = (offset - kFirstBarRegister) / 4;
  if (word >= kBars) return 0;
  // A 64-bit BAR takes two words.
  const std::uint64_t begin = bar(static_cast<int>(word & ~1U));
  return word % 2 == 0 ? static_cast<std::uint32_t>(begin) | kBarAttributes
                       : static_cast<std::uint32_t>(begin >> 32);
}

PciEndpoint::Access PciEndpoint::access_of(std::uint64_t bus_address,
                                           std::uint64_t size_bytes) const {
  const std::uint64_t begins = bus_address >> kBarShift;
  if (begins == 0 || begins > kBars) {
    throw std::invalid_argument(
        fmt::format("no base address region of chip {} ({}) contains bus address {:#x}", chip_,
                    cluster_.chip(chip_).name, bus_address));
  }
  const int number = static_cast<int>(begins) - 1;
  return {number, bus_address - bar(number), size_bytes};
}

PciEndpoint::Target PciEndpoint::target_of(const Access& access) const {
  const auto place = std::ranges::find_if(windows_, [&](const Place& of) {
    return of.bar == access.bar && access.offset >= of.offset &&
           access.offset - of.offset < of.size_bytes;
  });
  if (place == windows_.end() || place->is_reserved) {
    throw std::invalid_argument(fmt::format("a driver cannot access offset {:#x} of BAR {} of {}",
                                            access.offset, access.bar, cluster_.chip(chip_).name));
  }
  const auto number = static_cast<std::size_t>(place - windows_.begin());
  return {window(number), access.offset - place->offset};
}

pcie::Window PciEndpoint::window(std::size_t number) const {
  const std::uint64_t size_bytes = windows_[number].size_bytes;
  const int size_bits = std::countr_zero(size_bytes);
  const std::span registers(window_registers_);
  Bits bits{
      registers.subspan(number * layout_.window_register_bytes, layout_.window_register_bytes)};
  pcie::Window window;
  window.size_bytes = size_bytes;
  window.address = bits.take(layout_.address_bits - size_bits) << size_bits;
  window.tile.x = static_cast<int>(bits.take(kCoordinateBits));
  window.tile.y = static_cast<int>(bits.take(kCoordinateBits));
  if (bits.are_left()) {
    throw std::invalid_argument(
        fmt::format("the register of window {} of {} selects a multicast, NoC 1 or another order; "
                    "a window here reaches one tile over NoC 0 in default order",
                    number, cluster_.chip(chip_).name));
  }
  return window;
}

std::span<std::byte> PciEndpoint::registers_at(const Access& access) {
  const auto part = [&access](std::vector<std::byte>& of, std::uint64_t begin) {
    const bool is_inside = access.offset >= begin && access.offset - begin < of.size() &&
                           access.size_bytes <= of.size() - (access.offset - begin);
    return is_inside ? std::span(of).subspan(access.offset - begin, access.size_bytes)
                     : std::span<std::byte>();
  };
  if (access.bar == 0) return part(window_registers_, kWindowRegisters);
  if (access.bar == 2) return part(translation_registers_, layout_.translation_offset);
  return {};
}

void PciEndpoint::write(std::uint64_t bus_address, std::span<const std::byte> data) {
  const Access access = access_of(bus_address, data.size());
  if (const std::span<std::byte> registers = registers_at(access); !registers.empty()) {
    std::ranges::copy(data, registers.begin());
    cluster_.on_link(chip_, [&](auto& link) { return link.write_registers(data.size()); });
    return;
  }
  const Target to = target_of(access);
  cluster_.on_link(chip_,
                   [&](auto& link) { return link.write_window(to.window, to.offset, data); });
}

void PciEndpoint::read(std::uint64_t bus_address, std::span<std::byte> to) {
  const Access access = access_of(bus_address, to.size());
  if (const std::span<std::byte> registers = registers_at(access); !registers.empty()) {
    std::ranges::copy(registers, to.begin());
    cluster_.on_link(chip_, [](auto& link) { return link.read_register(); });
    return;
  }
  if (access.bar == 0 && access.offset == kNocConfiguration) {
    std::ranges::fill(to, std::byte{0});
    cluster_.on_link(chip_, [](auto& link) { return link.read_register(); });
    return;
  }
  const Target from = target_of(access);
  cluster_.on_link(chip_,
                   [&](auto& link) { return link.read_window(from.window, from.offset, to); });
}

}  // namespace towpath::tenstorrent
