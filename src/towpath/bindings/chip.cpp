// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>
#include <utility>

#include "towpath/bindings/figures.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::machine {
namespace {

using bindings::Field;
using bindings::figures_of;
using bindings::set_figures;

using Place = std::pair<int, int>;                        // a Coordinate as Python sees it
using WindowTuple = std::tuple<std::uint64_t, int, int>;  // size, count, reserved
constexpr double kClockMaxMhz = 1e6;

constexpr Field<RouterFigures> kRouterFields[] = {
    {"flit_bytes", &RouterFigures::flit_bytes},
    {"packet_data_flits_max", &RouterFigures::packet_data_flits_max},
    {"hop_cycles", &RouterFigures::hop_cycles},
    {"niu_to_router_cycles", &RouterFigures::niu_to_router_cycles},
    {"router_to_niu_cycles", &RouterFigures::router_to_niu_cycles},
    {"credit_return_cycles", &RouterFigures::credit_return_cycles},
    {"classes", &RouterFigures::classes},
    {"pool_flits", &RouterFigures::pool_flits},
    {"pool_flits_per_vc_max", &RouterFigures::pool_flits_per_vc_max},
    {"vc_release_cycles", &RouterFigures::vc_release_cycles},
    {"pool_flits_reserved", &RouterFigures::pool_flits_reserved},
    {"has_dateline", &RouterFigures::has_dateline},
};

constexpr Field<NiuFigures> kNiuFields[] = {
    {"initiators", &NiuFigures::initiators},
    {"transaction_ids", &NiuFigures::transaction_ids},
    {"outstanding_per_id_max", &NiuFigures::outstanding_per_id_max},
    {"request_cycles", &NiuFigures::request_cycles},
    {"read_response_cycles", &NiuFigures::read_response_cycles},
    {"acknowledge_cycles", &NiuFigures::acknowledge_cycles},
    {"port_rate_bytes_per_cycle", &NiuFigures::port_rate},
    {"request_stream_rate_bytes_per_cycle", &NiuFigures::request_stream_rate},
    {"request_streams", &NiuFigures::request_streams},
    {"response_stream_rate_bytes_per_cycle", &NiuFigures::response_stream_rate},
    {"backoff_cycles_min", &NiuFigures::backoff_cycles_min},
    {"backoff_cycles_max", &NiuFigures::backoff_cycles_max},
};

constexpr Field<DramFigures> kDramFields[] = {
    {"channels_per_group", &DramFigures::channels_per_group},
    {"channel_rate_bytes_per_cycle", &DramFigures::channel_rate},
    {"read_cycles", &DramFigures::read_cycles},
    {"write_cycles", &DramFigures::write_cycles},
    {"channel_bytes", &DramFigures::channel_bytes},
};

constexpr Field<SoftwareFigures> kSoftwareFields[] = {
    {"write_cycles", &SoftwareFigures::write_cycles},
    {"read_cycles", &SoftwareFigures::read_cycles},
    {"write_with_state_cycles", &SoftwareFigures::write_with_state_cycles},
    {"read_with_state_cycles", &SoftwareFigures::read_with_state_cycles},
    {"read_held_up_cycles", &SoftwareFigures::read_held_up_cycles},
    {"set_state_cycles", &SoftwareFigures::set_state_cycles},
    {"multicast_cycles", &SoftwareFigures::multicast_cycles},
    {"inline_write_cycles", &SoftwareFigures::inline_write_cycles},
    {"atomic_cycles", &SoftwareFigures::atomic_cycles},
    {"poll_cycles", &SoftwareFigures::poll_cycles},
    {"call_cycles", &SoftwareFigures::call_cycles},
    {"write_destination_cycles", &SoftwareFigures::write_destination_cycles},
    {"read_destination_cycles", &SoftwareFigures::read_destination_cycles},
    {"reduce_bytes_per_cycle", &SoftwareFigures::reduce_bytes_per_cycle},
    {"reduce_latency_cycles", &SoftwareFigures::reduce_latency_cycles},
};

constexpr Field<EthernetFigures> kEthernetFields[] = {
    {"tx_queues", &EthernetFigures::tx_queues},
    {"tx_queues_for_kernels", &EthernetFigures::tx_queues_for_kernels},
    {"queue_commands_max", &EthernetFigures::queue_commands_max},
    {"command_time_ns", &EthernetFigures::command_time},
    {"read_rate_gb_per_s", &EthernetFigures::read_rate},
    {"word_bytes", &EthernetFigures::word_bytes},
    {"frame_payload_bytes_max", &EthernetFigures::frame_payload_bytes_max},
    {"frame_overhead_bytes", &EthernetFigures::frame_overhead_bytes},
    {"line_rate_gb_per_s", &EthernetFigures::line_rate},
    {"path_time_ns", &EthernetFigures::path_time},
    {"frames_unacknowledged_max", &EthernetFigures::frames_unacknowledged_max},
    {"resend_timeout_ns", &EthernetFigures::resend_timeout},
    {"training_time_ns", &EthernetFigures::training_time},
};

constexpr Field<EthernetSoftwareFigures> kEthernetSoftwareFields[] = {
    {"send_cycles", &EthernetSoftwareFigures::send_cycles},
    {"poll_cycles", &EthernetSoftwareFigures::poll_cycles},
    {"routing_firmware_cycles", &EthernetSoftwareFigures::routing_firmware_cycles},
    {"fabric_loop_cycles", &EthernetSoftwareFigures::fabric_loop_cycles},
    {"fabric_send_cycles", &EthernetSoftwareFigures::fabric_send_cycles},
    {"fabric_receive_cycles", &EthernetSoftwareFigures::fabric_receive_cycles},
    {"fabric_cores", &EthernetSoftwareFigures::fabric_cores},
    {"fabric_payload_bytes", &EthernetSoftwareFigures::fabric_payload_bytes},
};

constexpr Field<Alignment> kAlignmentFields[] = {
    {"l1_bytes", &Alignment::l1_bytes},
    {"dram_read_bytes", &Alignment::dram_read_bytes},
    {"dram_write_bytes", &Alignment::dram_write_bytes},
};

constexpr Field<PcieFigures> kPcieFields[] = {
    {"generation", &PcieFigures::generation},
    {"lanes", &PcieFigures::lanes},
    {"dynamic_window_bytes", &PcieFigures::dynamic_window_bytes},
    {"tile_time_ns", &PcieFigures::tile_time},
    {"posted_buffer_bytes", &PcieFigures::posted_buffer_bytes},
    {"writes_outstanding", &PcieFigures::writes_outstanding},
    {"strict_time_ns", &PcieFigures::strict_time},
    {"axi_burst_bytes", &PcieFigures::axi_burst_bytes},
    {"dma_to_device", &PcieFigures::dma_to_device},
    {"dma_from_device", &PcieFigures::dma_from_device},
    {"dma_reads_outstanding", &PcieFigures::dma_reads_outstanding},
    {"dma_alignment_bytes", &PcieFigures::dma_alignment_bytes},
    {"dma_transfer_bytes_max", &PcieFigures::dma_transfer_bytes_max},
    {"dma_window_bytes", &PcieFigures::dma_window_bytes},
};

Place place_of(Coordinate at) { return {at.x, at.y}; }

std::vector<Place> places_of(const std::vector<Coordinate>& coordinates) {
  std::vector<Place> places;
  for (const Coordinate at : coordinates) places.push_back(place_of(at));
  return places;
}

std::vector<std::vector<Place>> dram_groups_of(const Chip& chip) {
  std::vector<std::vector<Place>> groups;
  for (const auto& group : chip.dram_groups) groups.push_back(places_of(group));
  return groups;
}

// Whether there is a tile for every place of the grid; no number overflows where there is.
bool is_complete(const Chip& chip) {
  const auto width = static_cast<std::int64_t>(chip.width);
  return width > 0 && chip.height > 0 &&
         width * chip.height == static_cast<std::int64_t>(chip.tiles.size());
}

// Takes the groups over into the tiles; build_chip refuses those that do not fit.
void set_dram_groups(Chip& chip, const std::vector<std::vector<Place>>& groups) {
  for (const std::vector<Place>& places : groups) {
    const int number = static_cast<int>(chip.dram_groups.size());
    std::vector<Coordinate>& group = chip.dram_groups.emplace_back();
    for (const auto& [x, y] : places) {
      const Coordinate at{x, y};
      group.push_back(at);
      if (is_complete(chip) && chip.holds(at)) {
        chip.tiles[static_cast<std::size_t>(chip.number_of(at))].dram_group = number;
      }
    }
  }
}

std::shared_ptr<const Chip> chip_from(
    std::string name, int width, int height, double clock_mhz, const std::vector<TileKind>& tiles,
    const std::vector<std::vector<Place>>& dram_groups, const std::vector<Place>& ethernet_cores,
    std::uint64_t l1_bytes, std::uint64_t ethernet_l1_bytes, const nb::dict& router,
    const nb::dict& niu, const nb::dict& dram, const nb::dict& software, const nb::dict& ethernet,
    const nb::dict& ethernet_software, const nb::dict& alignment, const nb::dict& pcie,
    const std::vector<WindowTuple>& pcie_windows, std::uint64_t harvested_ethernet) {
  if (!(clock_mhz >= 1 && clock_mhz <= kClockMaxMhz)) {
    throw std::invalid_argument(
        fmt::format("clock_mhz is {}; it must be 1 to {}", clock_mhz, kClockMaxMhz));
  }
  Chip chip;
  chip.name = std::move(name);
  chip.width = width;
  chip.height = height;
  chip.clock = Frequency::from_mhz(clock_mhz);
  for (const TileKind kind : tiles) chip.tiles.push_back({kind, -1});
  set_dram_groups(chip, dram_groups);
  for (const auto& [x, y] : ethernet_cores) chip.ethernet_cores.push_back({x, y});
  chip.l1_bytes = l1_bytes;
  chip.ethernet_l1_bytes = ethernet_l1_bytes;
  set_figures(chip.router, kRouterFields, router, "router", "a chip");
  set_figures(chip.niu, kNiuFields, niu, "niu", "a chip");
  set_figures(chip.dram, kDramFields, dram, "dram", "a chip");
  set_figures(chip.software, kSoftwareFields, software, "software", "a chip");
  set_figures(chip.ethernet, kEthernetFields, ethernet, "ethernet", "a chip");
  set_figures(chip.ethernet_software, kEthernetSoftwareFields, ethernet_software,
              "ethernet_software", "a chip");
  set_figures(chip.alignment, kAlignmentFields, alignment, "alignment", "a chip");
  set_figures(chip.pcie, kPcieFields, pcie, "pcie", "a chip");
  for (const auto& [size_bytes, count, reserved] : pcie_windows) {
    chip.pcie.windows.push_back({size_bytes, count, reserved});
  }
  chip.harvested_ethernet = harvested_ethernet;
  return build_chip(std::move(chip));
}

}  // namespace
}  // namespace towpath::machine

void bind_chip(nb::module_& module) {
  using namespace towpath::machine;
  nb::enum_<TileKind>(module, "TileKind")
      .value("worker", TileKind::worker)
      .value("dram", TileKind::dram)
      .value("ethernet", TileKind::ethernet)
      .value("pcie", TileKind::pcie)
      .value("arc", TileKind::arc)
      .value("router_only", TileKind::router_only)
      .value("harvested", TileKind::harvested);
  nb::class_<Chip>(module, "Chip")
      .def(nb::new_(&chip_from), nb::kw_only(), "name"_a, "width"_a, "height"_a, "clock_mhz"_a,
           "tiles"_a, "dram_groups"_a, "ethernet_cores"_a, "l1_bytes"_a, "ethernet_l1_bytes"_a,
           "router"_a, "niu"_a, "dram"_a, "software"_a, "ethernet"_a, "ethernet_software"_a,
           "alignment"_a, "pcie"_a = nb::dict(), "pcie_windows"_a = std::vector<WindowTuple>(),
           "harvested_ethernet"_a = 0)
      .def_ro("name", &Chip::name)
      .def_ro("width", &Chip::width)
      .def_ro("height", &Chip::height)
      .def_prop_ro("clock_mhz",
                   [](const Chip& chip) { return static_cast<double>(chip.clock.hz()) / 1e6; })
      .def_prop_ro("tiles",
                   [](const Chip& chip) {
                     std::vector<TileKind> kinds;
                     for (const Tile& tile : chip.tiles) kinds.push_back(tile.kind);
                     return kinds;
                   })
      .def_prop_ro("dram_groups", &dram_groups_of)
      .def_prop_ro("workers", [](const Chip& chip) { return places_of(chip.workers); })
      .def_ro("worker_columns", &Chip::worker_columns)
      .def_prop_ro("worker_rows", &Chip::worker_rows)
      .def(
          "worker", [](const Chip& chip, int x, int y) { return place_of(chip.worker(x, y)); },
          "logical_x"_a, "logical_y"_a, "The place (x, y) of a worker of the logical grid.")
      .def_prop_ro("ethernet_cores",
                   [](const Chip& chip) { return places_of(chip.ethernet_cores); })
      .def_ro("l1_bytes", &Chip::l1_bytes)
      .def_ro("ethernet_l1_bytes", &Chip::ethernet_l1_bytes)
      .def_prop_ro("router",
                   [](const Chip& chip) { return figures_of(chip.router, kRouterFields); })
      .def_prop_ro("niu", [](const Chip& chip) { return figures_of(chip.niu, kNiuFields); })
      .def_prop_ro("dram", [](const Chip& chip) { return figures_of(chip.dram, kDramFields); })
      .def_prop_ro("software",
                   [](const Chip& chip) { return figures_of(chip.software, kSoftwareFields); })
      .def_prop_ro("ethernet",
                   [](const Chip& chip) { return figures_of(chip.ethernet, kEthernetFields); })
      .def_prop_ro("ethernet_software",
                   [](const Chip& chip) {
                     return figures_of(chip.ethernet_software, kEthernetSoftwareFields);
                   })
      .def_prop_ro("pcie", [](const Chip& chip) { return figures_of(chip.pcie, kPcieFields); })
      .def_prop_ro("pcie_windows",
                   [](const Chip& chip) {
                     std::vector<WindowTuple> windows;
                     for (const WindowSize& one : chip.pcie.windows) {
                       windows.emplace_back(one.size_bytes, one.count, one.reserved);
                     }
                     return windows;
                   })
      .def_prop_ro("alignment",
                   [](const Chip& chip) { return figures_of(chip.alignment, kAlignmentFields); });
}
