// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::machine {
namespace {

using Place = std::pair<int, int>;  // a Coordinate as Python sees it
constexpr double kBytesPerCycleMax = 1e6;
constexpr double kClockMaxMhz = 1e6;
constexpr double kTimeMaxNs = 1e9;
constexpr double kRateMaxGbPerS = 1e6;

// A block of figures is a dict in Python. Its fields are named once, here, for both directions.
template <typename Block>
struct Field {
  const char* name;
  std::variant<int Block::*, bool Block::*, std::uint64_t Block::*, BytesPerCycle Block::*,
               Time Block::*, Rate Block::*>
      member;
};

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
    {"vc_retry_cycles", &RouterFigures::vc_retry_cycles},
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

constexpr std::span<const Field<RouterFigures>> fields_of(const RouterFigures&) {
  return kRouterFields;
}
constexpr std::span<const Field<NiuFigures>> fields_of(const NiuFigures&) { return kNiuFields; }
constexpr std::span<const Field<DramFigures>> fields_of(const DramFigures&) { return kDramFields; }
constexpr std::span<const Field<SoftwareFigures>> fields_of(const SoftwareFigures&) {
  return kSoftwareFields;
}
constexpr std::span<const Field<EthernetFigures>> fields_of(const EthernetFigures&) {
  return kEthernetFields;
}
constexpr std::span<const Field<EthernetSoftwareFigures>> fields_of(
    const EthernetSoftwareFigures&) {
  return kEthernetSoftwareFields;
}
constexpr std::span<const Field<Alignment>> fields_of(const Alignment&) { return kAlignmentFields; }

template <typename Value>
Value value_from(nb::handle given, const std::string& field, const char* allowed) {
  Value value{};
  if (!nb::try_cast<Value>(given, value)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be {}", field, nb::repr(given).c_str(), allowed));
  }
  return value;
}

void set(int& member, nb::handle given, const std::string& field) {
  member = value_from<int>(given, field, "a whole number");
}

void set(bool& member, nb::handle given, const std::string& field) {
  member = value_from<bool>(given, field, "True or False");
}

void set(std::uint64_t& member, nb::handle given, const std::string& field) {
  member = value_from<std::uint64_t>(given, field, "a whole number, not negative");
}

void set(BytesPerCycle& member, nb::handle given, const std::string& field) {
  const double rate = value_from<double>(given, field, "a number");
  if (!(rate > 0 && rate <= kBytesPerCycleMax)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be positive, {} at most", field, rate, kBytesPerCycleMax));
  }
  member = BytesPerCycle::from(rate);
}

void set(Time& member, nb::handle given, const std::string& field) {
  const double time_ns = value_from<double>(given, field, "a number");
  if (!(time_ns >= 0 && time_ns <= kTimeMaxNs)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be 0 to {}", field, time_ns, kTimeMaxNs));
  }
  member = Time::from_ns(time_ns);
}

void set(Rate& member, nb::handle given, const std::string& field) {
  const double rate_gb_per_s = value_from<double>(given, field, "a number");
  if (!(rate_gb_per_s > 0 && rate_gb_per_s <= kRateMaxGbPerS)) {
    throw std::invalid_argument(fmt::format("{} is {}; it must be positive, {} at most", field,
                                            rate_gb_per_s, kRateMaxGbPerS));
  }
  member = Rate::from_gb_per_s(rate_gb_per_s);
}

// Figures that are not given stay as they are.
template <typename Block>
void set_block(Block& block, const nb::dict& values, const char* block_name) {
  const auto fields = fields_of(block);
  for (const auto& [key, value] : values) {
    const std::string name = nb::str(key).c_str();
    const std::string field = fmt::format("{}.{}", block_name, name);
    const auto known = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field<Block>& one) { return name == one.name; });
    if (known == fields.end()) {
      throw std::invalid_argument(fmt::format("{} is no figure of a chip", field));
    }
    std::visit([&](auto member) { set(block.*member, value, field); }, known->member);
  }
}

nb::object shown(BytesPerCycle rate) { return nb::cast(rate.value()); }
nb::object shown(Time time) { return nb::cast(time.ns()); }
nb::object shown(Rate rate) { return nb::cast(rate.gb_per_s()); }
template <typename Value>
nb::object shown(Value value) {
  return nb::cast(value);
}

template <typename Block>
nb::dict dict_of(const Block& block) {
  nb::dict values;
  for (const Field<Block>& field : fields_of(block)) {
    std::visit([&](auto member) { values[field.name] = shown(block.*member); }, field.member);
  }
  return values;
}

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
    const nb::dict& ethernet_software, const nb::dict& alignment) {
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
  set_block(chip.router, router, "router");
  set_block(chip.niu, niu, "niu");
  set_block(chip.dram, dram, "dram");
  set_block(chip.software, software, "software");
  set_block(chip.ethernet, ethernet, "ethernet");
  set_block(chip.ethernet_software, ethernet_software, "ethernet_software");
  set_block(chip.alignment, alignment, "alignment");
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
           "alignment"_a)
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
      .def_prop_ro("router", [](const Chip& chip) { return dict_of(chip.router); })
      .def_prop_ro("niu", [](const Chip& chip) { return dict_of(chip.niu); })
      .def_prop_ro("dram", [](const Chip& chip) { return dict_of(chip.dram); })
      .def_prop_ro("software", [](const Chip& chip) { return dict_of(chip.software); })
      .def_prop_ro("ethernet", [](const Chip& chip) { return dict_of(chip.ethernet); })
      .def_prop_ro("ethernet_software",
                   [](const Chip& chip) { return dict_of(chip.ethernet_software); })
      .def_prop_ro("alignment", [](const Chip& chip) { return dict_of(chip.alignment); });
}
