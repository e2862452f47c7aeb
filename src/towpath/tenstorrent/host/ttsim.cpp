// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// A shared library that tt-umd loads as its simulator: the functions that it looks up by name, on a
// chip behind a host link. Chip and host are chip.json and host.json next to the library.
//
// The interface has no handle, so the library has one chip at a time, from libttsim_init to
// libttsim_exit; tt-umd calls it under its own lock. Errors leave it as exceptions, which tt-umd
// passes on: std::invalid_argument is a ValueError in Python.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "towpath/machine/load.hpp"
#include "towpath/tenstorrent/host/pci_endpoint.hpp"

#define TOWPATH_DRIVER_CALL extern "C" __attribute__((visibility("default")))

namespace {

using towpath::tenstorrent::HostCluster;
using towpath::tenstorrent::PciEndpoint;

// The answer of the bus if there is no device.
constexpr std::uint32_t kNoDevice = 0xFFFF'FFFF;
// A device's address on the bus: function in bits 0 to 2, device and bus above.
constexpr std::uint32_t kFunctionBits = 3;

struct Board {
  explicit Board(const std::string& folder)
      : cluster(towpath::machine::load_host(folder + "/host.json"),
                {towpath::machine::load_chip(folder + "/chip.json")}, {}),
        endpoint(cluster, 0) {}

  HostCluster cluster;
  PciEndpoint endpoint;
};

std::unique_ptr<Board> the_board;

Board& board() {
  if (!the_board) throw std::invalid_argument("the simulator was called before init or after exit");
  return *the_board;
}

std::string own_folder() {
  static const char here = 0;
  Dl_info found = {};
  if (dladdr(&here, &found) == 0) throw std::invalid_argument("the library has no file");
  const std::string file = found.dli_fname;
  return file.substr(0, file.rfind('/'));
}

std::span<std::byte> bytes(void* at, std::uint32_t size_bytes) {
  return {static_cast<std::byte*>(at), size_bytes};
}

std::span<const std::byte> bytes(const void* at, std::uint32_t size_bytes) {
  return {static_cast<const std::byte*>(at), size_bytes};
}

towpath::machine::Coordinate tile(std::uint32_t x, std::uint32_t y) {
  return {static_cast<int>(x), static_cast<int>(y)};
}

}  // namespace

TOWPATH_DRIVER_CALL void libttsim_init() { the_board = std::make_unique<Board>(own_folder()); }

TOWPATH_DRIVER_CALL void libttsim_exit() { the_board.reset(); }

TOWPATH_DRIVER_CALL std::uint32_t libttsim_pci_config_rd32(std::uint32_t bus_device_function,
                                                           std::uint32_t offset) {
  const bool is_there = bus_device_function >> kFunctionBits == 0;
  return is_there ? board().endpoint.configuration(offset) : kNoDevice;
}

TOWPATH_DRIVER_CALL void libttsim_pci_mem_rd_bytes(std::uint64_t bus_address, void* to,
                                                   std::uint32_t size_bytes) {
  board().endpoint.read(bus_address, bytes(to, size_bytes));
}

TOWPATH_DRIVER_CALL void libttsim_pci_mem_wr_bytes(std::uint64_t bus_address, const void* data,
                                                   std::uint32_t size_bytes) {
  board().endpoint.write(bus_address, bytes(data, size_bytes));
}

TOWPATH_DRIVER_CALL void libttsim_tile_rd_bytes(std::uint32_t x, std::uint32_t y,
                                                std::uint64_t address, void* to,
                                                std::uint32_t size_bytes) {
  board().cluster.on_link(0, [&](auto& link) {
    return link.read_from_device(bytes(to, size_bytes), tile(x, y), address);
  });
}

TOWPATH_DRIVER_CALL void libttsim_tile_wr_bytes(std::uint32_t x, std::uint32_t y,
                                                std::uint64_t address, const void* data,
                                                std::uint32_t size_bytes) {
  board().cluster.on_link(0, [&](auto& link) {
    return link.write_to_device(bytes(data, size_bytes), tile(x, y), address);
  });
}

// The driver calls it after each read. Here the time passes, and posted writes land.
TOWPATH_DRIVER_CALL void libttsim_clock(std::uint32_t cycles) {
  HostCluster& cluster = board().cluster;
  cluster.wait(cluster.chip(0).clock.time_of(towpath::Cycles(cycles)));
}

// Called when the chip reaches host memory. Programs do not run on the chip, so this does not
// happen.
TOWPATH_DRIVER_CALL void libttsim_set_pci_dma_mem_callbacks(
    void (*)(std::uint64_t bus_address, void* to, std::uint32_t size_bytes),
    void (*)(std::uint64_t bus_address, const void* data, std::uint32_t size_bytes)) {}

// Not part of the driver's interface: simulated time since libttsim_init.
TOWPATH_DRIVER_CALL std::uint64_t towpath_simulated_time_ps() {
  return static_cast<std::uint64_t>(board().cluster.now().ps());
}
