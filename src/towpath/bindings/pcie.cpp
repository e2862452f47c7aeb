// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <utility>

#include "towpath/machine/host.hpp"
#include "towpath/tenstorrent/host/host_cluster.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::tenstorrent {
namespace {

using pcie::Transfer;
using pcie::TransferOptions;
using Core = std::pair<int, int>;
using Given = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Taken = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

machine::Coordinate tile(Core core) { return {core.first, core.second}; }
std::span<const std::byte> bytes_of(const Given& array) {
  return {reinterpret_cast<const std::byte*>(array.data()), array.size()};
}
std::span<std::byte> bytes_of(const Taken& array) {
  return {reinterpret_cast<std::byte*>(array.data()), array.size()};
}

TransferOptions options_from(pcie::Ordering ordering, pcie::Mapping mapping,
                             std::uint64_t window_bytes, pcie::Load load,
                             std::uint64_t misalignment_bytes) {
  return {ordering, mapping, window_bytes, load, misalignment_bytes};
}

nb::list parts_of(const Transfer& transfer) {
  nb::list parts;
  for (const pcie::Part& part : transfer.parts) {
    parts.append(nb::make_tuple(std::string(part.name), part.time.ns()));
  }
  return parts;
}

void bind_words(nb::module_& module) {
  nb::enum_<pcie::Ordering>(module, "Ordering")
      .value("default", pcie::Ordering::standard)
      .value("strict", pcie::Ordering::strict)
      .value("posted", pcie::Ordering::posted);
  nb::enum_<pcie::Mapping>(module, "Mapping")
      .value("write_combining", pcie::Mapping::write_combining)
      .value("uncached", pcie::Mapping::uncached);
  nb::enum_<pcie::Load>(module, "Load")
      .value("copy", pcie::Load::copy)
      .value("stream", pcie::Load::stream);
  nb::class_<Transfer>(module, "Transfer", "What a call did, and how long it took.")
      .def_prop_ro("asked", [](const Transfer& t) { return pcie::name_of(t.asked); })
      .def_prop_ro("used", [](const Transfer& t) { return pcie::name_of(t.used); })
      .def_ro("obstacle", &Transfer::obstacle, "Why it is not the mechanism asked for.")
      .def_prop_ro("begin_ns", [](const Transfer& t) { return t.begin.ns(); })
      .def_prop_ro("end_ns", [](const Transfer& t) { return t.end.ns(); })
      .def_prop_ro("time_ns", [](const Transfer& t) { return t.time().ns(); })
      .def_ro("accesses", &Transfer::accesses, "Round trips of a read by the processor.")
      .def_ro("windows", &Transfer::windows, "Windows configured for it.")
      .def_prop_ro("parts", &parts_of, "(name, nanoseconds); their sum is time_ns.");
  nb::class_<TransferOptions>(module, "TransferOptions")
      .def(nb::new_(&options_from), nb::kw_only(), "ordering"_a = pcie::Ordering::standard,
           "mapping"_a = pcie::Mapping::write_combining, "window_bytes"_a = 0,
           "load"_a = pcie::Load::copy, "misalignment_bytes"_a = 0);
}

// Binds calls of a link that transfer the bytes of an array.
template <typename Array, typename Bytes>
void bind_bytes(nb::class_<HostCluster>& cluster, const char* name, const char* array_name,
                Transfer (pcie::HostLink::*call)(Bytes, machine::Coordinate, std::uint64_t,
                                                 const TransferOptions&)) {
  cluster.def(
      name,
      [call](HostCluster& self, const Array& array, int chip, Core core, std::uint64_t address,
             const TransferOptions& options) {
        return self.on_link(chip, [&](pcie::HostLink& link) {
          return (link.*call)(bytes_of(array), tile(core), address, options);
        });
      },
      nb::arg(array_name), "chip"_a, "core"_a, "address"_a, "options"_a = TransferOptions());
}

using Buffered = Transfer (pcie::HostLink::*)(const pcie::BufferRange&, machine::Coordinate,
                                              std::uint64_t, const TransferOptions&);
using ByDevice = Transfer (pcie::HostLink::*)(const pcie::BufferRange&, machine::Coordinate,
                                              std::uint64_t);

void bind_transfers(nb::class_<HostCluster>& cluster) {
  const auto by_engine = [&](const char* name, Buffered call) {
    cluster.def(
        name,
        [call](HostCluster& self, int chip, std::size_t buffer, std::uint64_t offset,
               std::uint64_t size_bytes, Core core, std::uint64_t address,
               const TransferOptions& options) {
          return self.on_link(chip, [&](pcie::HostLink& link) {
            return (link.*call)({buffer, offset, size_bytes}, tile(core), address, options);
          });
        },
        "chip"_a, "buffer"_a, "offset"_a, "size_bytes"_a, "core"_a, "address"_a,
        "options"_a = TransferOptions());
  };
  const auto by_device = [&](const char* name, ByDevice call) {
    cluster.def(
        name,
        [call](HostCluster& self, int chip, std::size_t buffer, std::uint64_t offset,
               std::uint64_t size_bytes, Core core, std::uint64_t address) {
          return self.on_link(chip, [&](pcie::HostLink& link) {
            return (link.*call)({buffer, offset, size_bytes}, tile(core), address);
          });
        },
        "chip"_a, "buffer"_a, "offset"_a, "size_bytes"_a, "core"_a, "address"_a);
  };
  by_engine("buffer_dma_write", &pcie::HostLink::dma_write_to_device);
  by_engine("buffer_dma_read", &pcie::HostLink::dma_read_from_device);
  by_device("buffer_noc_write", &pcie::HostLink::noc_write_to_host);
  by_device("buffer_noc_read", &pcie::HostLink::noc_read_from_host);
}

void bind_buffers(nb::class_<HostCluster>& cluster) {
  cluster
      .def(
          "allocate_sysmem_buffer",
          [](HostCluster& self, int chip, std::uint64_t size_bytes) {
            return self.on_link(
                chip, [&](auto& link) { return link.allocate_sysmem_buffer(size_bytes); });
          },
          "chip"_a, "size_bytes"_a)
      .def(
          "map_sysmem_buffer",
          [](HostCluster& self, int chip, const Taken& memory) {
            return self.on_link(
                chip, [&](auto& link) { return link.map_sysmem_buffer(bytes_of(memory)); });
          },
          "chip"_a, "memory"_a, "The array must stay until it is unmapped.")
      .def(
          "unmap_sysmem_buffer",
          [](HostCluster& self, int chip, std::size_t buffer) {
            self.on_link(chip, [&](auto& link) { link.unmap_sysmem_buffer(buffer); });
          },
          "chip"_a, "buffer"_a)
      .def(
          "buffer_map_time_ns",
          [](HostCluster& self, int chip, std::size_t buffer) {
            return self.sysmem_buffer(chip, buffer).map_time.ns();
          },
          "chip"_a, "buffer"_a)
      .def(
          "buffer_noc_address",
          [](HostCluster& self, int chip, std::size_t buffer) {
            return self.sysmem_buffer(chip, buffer).noc_address;
          },
          "chip"_a, "buffer"_a)
      .def(
          "buffer_bytes",
          [](nb::handle_t<HostCluster> self, int chip, std::size_t buffer) {
            auto& bytes = nb::cast<HostCluster&>(self).sysmem_buffer(chip, buffer).bytes;
            return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(
                reinterpret_cast<std::uint8_t*>(bytes.data()), {bytes.size()}, self);
          },
          "chip"_a, "buffer"_a, "The buffer itself, as an array.");
}

}  // namespace
}  // namespace towpath::tenstorrent

void bind_pcie(nb::module_& module) {
  using namespace towpath;
  using namespace towpath::tenstorrent;
  nb::class_<machine::Host>(module, "Host").def_ro("name", &machine::Host::name);
  bind_words(module);
  nb::class_<HostCluster> cluster(module, "HostCluster");
  cluster
      .def(
          "__init__",
          [](HostCluster* self, std::shared_ptr<machine::Host> host,
             const std::vector<std::shared_ptr<machine::Chip>>& chips, bool carries_data,
             int host_memory_channels, bool limits_posted_writes, bool limits_noc,
             std::uint64_t seed) {
            const std::vector<std::shared_ptr<const machine::Chip>> all(chips.begin(), chips.end());
            new (self) HostCluster(
                std::move(host), all,
                {seed, {carries_data, host_memory_channels, {limits_posted_writes, limits_noc}}});
          },
          nb::kw_only(), "host"_a, "chips"_a, "carries_data"_a = true, "host_memory_channels"_a = 1,
          "limits_posted_writes"_a = true, "limits_noc"_a = true, "seed"_a = 1)
      .def_prop_ro("chips", &HostCluster::chips)
      .def_prop_ro("now_ns", [](const HostCluster& self) { return self.now().ns(); })
      .def(
          "core",
          [](const HostCluster& self, int chip, machine::TileKind kind, int number) {
            const machine::Coordinate at = self.core(chip, kind, number);
            return Core(at.x, at.y);
          },
          "chip"_a, "kind"_a, "number"_a)
      .def(
          "configure_tlb",
          [](HostCluster& self, int chip, Core core, std::uint64_t size_bytes,
             std::uint64_t address, pcie::Ordering ordering, pcie::Mapping mapping) {
            return self.on_link(chip, [&](auto& link) {
              return link.configure_tlb(tile(core), size_bytes, address, ordering, mapping);
            });
          },
          "chip"_a, "core"_a, "size_bytes"_a, "address"_a, "ordering"_a = pcie::Ordering::standard,
          "mapping"_a = pcie::Mapping::write_combining)
      .def("free_tlb", &HostCluster::free_tlb, "chip"_a, "window"_a)
      .def("flush", &HostCluster::flush, "Lets everything that is posted land.")
      .def(
          "memory",
          [](HostCluster& self, int chip, Core core, std::uint64_t address, const Taken& to) {
            noc::Memory& memory = self.memory(chip, tile(core));
            const std::uint64_t size_bytes = memory.size_bytes();
            if (address > size_bytes || to.size() > size_bytes - address) {
              throw std::invalid_argument(fmt::format(
                  "{} bytes at address {} of ({}, {}) are beyond its memory, which has {}",
                  to.size(), address, core.first, core.second, size_bytes));
            }
            memory.read(address, bytes_of(to));
          },
          "chip"_a, "core"_a, "address"_a, "to"_a, "What is in the memory behind a tile, now.");
  bind_bytes<Given, std::span<const std::byte>>(cluster, "write_to_device", "data",
                                                &pcie::HostLink::write_to_device);
  bind_bytes<Taken, std::span<std::byte>>(cluster, "read_from_device", "to",
                                          &pcie::HostLink::read_from_device);
  bind_bytes<Given, std::span<const std::byte>>(cluster, "dma_write_to_device", "data",
                                                &pcie::HostLink::dma_write_to_device);
  bind_bytes<Taken, std::span<std::byte>>(cluster, "dma_read_from_device", "to",
                                          &pcie::HostLink::dma_read_from_device);
  bind_transfers(cluster);
  bind_buffers(cluster);
}
