// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/load.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/machine/json_reader.hpp"
#include "towpath/machine/shipped_machines.hpp"

namespace towpath::machine {

namespace {

constexpr std::int64_t kHashSeedMax = (std::int64_t{1} << 32) - 1;
constexpr int kNumberMax = 1'000'000;  // larger than any coordinate, channel or device

// --- files ---------------------------------------------------------------------------------------

// The folders in TOWPATH_MACHINES.
std::vector<std::filesystem::path> machine_folders() {
  const char* given = std::getenv("TOWPATH_MACHINES");
  std::stringstream list(given == nullptr ? "" : given);
  std::vector<std::filesystem::path> folders;
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) {
    throw std::invalid_argument(fmt::format("{}: cannot be read", file.string()));
  }
  return text;
}

// The text of a description, and the prefix of its error messages.
struct Source {
  std::string text;
  std::string origin;
};

Source source_of(const std::string& name_or_file) {
  if (name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".json")) {
    return {text_of(name_or_file), name_or_file};
  }
  for (const std::filesystem::path& folder : machine_folders()) {
    const std::filesystem::path file = folder / (name_or_file + ".json");
    if (std::filesystem::is_regular_file(file)) return {text_of(file), file.string()};
  }
  std::string names;
  for (const ShippedMachine& shipped : shipped_machines()) {
    if (shipped.name == name_or_file) {
      return {std::string(shipped.json), fmt::format("machine '{}'", shipped.name)};
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shipped.name);
  }
  throw std::invalid_argument(
      fmt::format("there is no machine '{}'; choose one of {}, or name folders of more machines in "
                  "TOWPATH_MACHINES",
                  name_or_file, names));
}

Json parsed(std::string_view text, const std::string& origin) {
  try {
    return parse_json(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: is not valid JSON: {}", origin, error.what()));
  }
}

// The description in a text. It must have the given form.
JsonObject description(const Json& json, const std::string& form, const std::string& origin) {
  JsonObject object(json, origin, "");
  const std::string given = object.text("form");
  if (given != form) object.checks().fail_at("form", "is '{}'; it must be '{}'", given, form);
  return object;
}

template <typename Built>
Built load(const std::string& name_or_file, Built (*parse)(std::string_view, const std::string&)) {
  const Source source = source_of(name_or_file);
  return parse(source.text, source.origin);
}

// --- blocks --------------------------------------------------------------------------------------

// A list is identified by its path, such as "pcie.windows".
void read_list(const JsonObject& object, std::string_view path, void* list,
               const BlockTable& table) {
  if (const std::size_t dot = path.find('.'); dot != std::string_view::npos) {
    return read_list(object.object(path.substr(0, dot)), path.substr(dot + 1), list, table);
  }
  for (const JsonObject& entry : object.objects(path)) {
    entry.check_names(table.parameters, {"name"});
    entry.read(table.list->add(list), table.parameters);
  }
}

// Reads all blocks of an object. Conditional blocks may be absent.
void read_blocks(const JsonObject& object, void* description, std::span<const BlockTable> tables) {
  for (const BlockTable& table : tables) {
    void* there = table.in(description);
    const std::string_view first = table.path.substr(0, table.path.find('.'));
    if (table.needed != Needed::always && !first.empty() && !object.has(first)) continue;
    if (table.list != nullptr) {
      read_list(object, table.path, there, table);
    } else if (table.path.empty()) {
      object.read(there, table.parameters);
    } else {
      const JsonObject inner = object.object(table.path);
      inner.check_names(table.parameters, {"windows"});
      inner.read(there, table.parameters);
    }
  }
}

// --- chips ---------------------------------------------------------------------------------------

TileKind tile_kind_of(const JsonObject& object, const Json& word) {
  for (const TileKind kind : kTileKinds) {
    if (word.kind == Json::Kind::text && word.text == name_of(kind)) return kind;
  }
  object.checks().fail_at(object.field_of("tiles"), "has {}, which is not a kind of tile",
                          word.source);
}

void read_tiles(const JsonObject& object, Chip& chip) {
  chip.width = static_cast<int>(object.whole("width", 1, kSideMax));
  chip.height = static_cast<int>(object.whole("height", 1, kSideMax));
  const Json& rows = object.at("tiles");
  const auto is_list = [](const Json& value) { return value.kind == Json::Kind::list; };
  if (!is_list(rows) || !std::all_of(rows.items.begin(), rows.items.end(), is_list)) {
    object.checks().fail_at(object.field_of("tiles"), "must be a list of rows");
  }
  for (const Json& row : rows.items) {
    for (const Json& word : row.items) chip.tiles.push_back({tile_kind_of(object, word)});
  }
  for (const std::vector<int>& at : object.tuples("ethernet_cores", 2, kSideMax)) {
    chip.ethernet_cores.push_back({at[0], at[1]});
  }
  for (const std::vector<int>& tile : object.tuples("dram_tiles", 3, kSideMax)) {
    const Coordinate at{tile[1], tile[2]};
    if (index(tile[0]) >= chip.dram_groups.size()) chip.dram_groups.resize(index(tile[0]) + 1);
    chip.dram_groups[index(tile[0])].push_back(at);
    if (chip.holds(at) && index(chip.number_of(at)) < chip.tiles.size()) {
      chip.tiles[index(chip.number_of(at))].dram_group = tile[0];
    }
  }
  for (const int channel : object.numbers("harvested_ethernet", 63)) {
    chip.harvested_ethernet |= std::uint64_t{1} << channel;
  }
  for (const int group : object.numbers("harvested_dram", 63)) {
    chip.harvested_dram |= std::uint64_t{1} << group;
  }
}

std::shared_ptr<const Chip> chip_from(const JsonObject& object) {
  object.check_names({"form",           "name",
                      "description",    "architecture",
                      "width",          "height",
                      "tiles",          "dram_tiles",
                      "ethernet_cores", "harvested_ethernet",
                      "harvested_dram", "clock_mhz",
                      "l1_bytes",       "ethernet_l1_bytes",
                      "router",         "niu",
                      "dram",           "ethernet",
                      "pcie",           "alignment"});
  Chip chip;
  chip.name = object.text("name");
  if (object.has("architecture")) chip.architecture = object.text("architecture");
  read_tiles(object, chip);
  read_blocks(object, &chip, chip_tables());
  return build_chip(std::move(chip));
}

// --- clusters of chips ---------------------------------------------------------------------------

EthernetLink link_from(const JsonObject& object) {
  object.check_names({"ends", "is_reserved"});
  const auto ends = object.tuples("ends", 2, kNumberMax);
  if (ends.size() != 2) object.checks().fail_at(object.field_of("ends"), "must be two ends");
  return {{{{ends[0][0], ends[0][1]}, {ends[1][0], ends[1][1]}}}, object.truth("is_reserved")};
}

ClusterChip cluster_chip_from(const JsonObject& object,
                              const std::vector<std::shared_ptr<const Chip>>& kinds) {
  object.check_names({"kind", "x", "y", "rack", "shelf", "has_host_link"});
  const auto place = [&](const char* name) {
    return static_cast<int>(object.whole(name, 0, kNumberMax));
  };
  const auto last = static_cast<std::int64_t>(kinds.size()) - 1;
  const std::size_t kind = index(object.whole("kind", 0, last));
  return {kinds[kind],   place("x"),     place("y"),
          place("rack"), place("shelf"), object.truth("has_host_link")};
}

// --- clusters of GPUs ----------------------------------------------------------------------------

constexpr std::pair<const char*, DeviceKind> kDeviceKinds[] = {
    {"gpu", DeviceKind::gpu},
    {"nvswitch", DeviceKind::nvswitch},
    {"nic", DeviceKind::nic},
    {"network_switch", DeviceKind::network_switch},
    {"pcie_bridge", DeviceKind::pcie_bridge},
    {"cpu", DeviceKind::cpu},
};

template <typename Kind, std::size_t kSize>
Kind kind_from(std::string_view given, const Checks& checks, const std::string& field,
               const std::pair<const char*, Kind> (&words)[kSize]) {
  for (const auto& [word, kind] : words) {
    if (given == word) return kind;
  }
  checks.fail_at(field, "is '{}', which is not a known kind", given);
}

// Limits of the number of parallel links that a wire may represent.
constexpr double kParallelMin = 1e-6;
constexpr double kParallelMax = 1e6;

struct LinkType {
  Link link;
  double rate_gb_per_s = 0;  // before rounding to bytes per second
};
using LinkTypes = std::map<std::string, LinkType>;

LinkTypes link_types_from(const JsonObject& object) {
  LinkTypes types;
  const JsonObject all = object.object("link_types");
  for (const std::string& name : all.names()) {
    const JsonObject type = all.object(name.c_str());
    type.check_names(link_parameters(), {"kind"});
    LinkType& read = types[name];
    read.link.kind = kind_from(type.text("kind"), type.checks(), type.field_of("kind"), kLinkKinds);
    type.read(&read.link, link_parameters());
    read.rate_gb_per_s = type.at("rate_gb_per_s").number;
  }
  return types;
}

GpuCost gpu_cost_from(const JsonObject& object) {
  object.check_names(gpu_cost_tables().front().parameters, {"simple", "ll", "ll128", "kernel"});
  GpuCost cost;
  read_blocks(object, &cost, gpu_cost_tables());
  if (object.has("kernel")) {
    const JsonObject kernel = object.object("kernel");
    kernel.check_names(kernel_parameters(), {});
    kernel.read(&cost.kernel.emplace(), kernel_parameters());
  }
  return cost;
}

}  // namespace

std::shared_ptr<const Chip> parse_chip(std::string_view json, const std::string& origin) {
  const Json data = parsed(json, origin);
  return chip_from(description(data, "chip", origin));
}

std::shared_ptr<const ChipCluster> parse_chip_cluster(std::string_view json,
                                                      const std::string& origin) {
  const Json data = parsed(json, origin);
  const JsonObject object = description(data, "chip_cluster", origin);
  object.check_names({"form", "name", "kinds", "chips", "links"});
  std::vector<std::shared_ptr<const Chip>> kinds;
  for (const JsonObject& kind : object.objects("kinds")) kinds.push_back(chip_from(kind));
  ChipCluster cluster;
  cluster.name = object.text("name");
  for (const JsonObject& chip : object.objects("chips")) {
    cluster.chips.push_back(cluster_chip_from(chip, kinds));
  }
  for (const JsonObject& link : object.objects("links")) cluster.links.push_back(link_from(link));
  return build_chip_cluster(std::move(cluster));
}

std::shared_ptr<const Host> parse_host(std::string_view json, const std::string& origin) {
  const Json data = parsed(json, origin);
  const JsonObject object = description(data, "host", origin);
  object.check_names({"form", "name", "link", "core", "driver", "memory"});
  Host host;
  host.name = object.text("name");
  read_blocks(object, &host, host_tables());
  return build_host(std::move(host));
}

std::shared_ptr<const MailboxCluster> parse_mailbox_cluster(std::string_view json,
                                                            const std::string& origin) {
  const Json data = parsed(json, origin);
  const JsonObject object = description(data, "mailbox_cluster", origin);
  object.check_names(
      mailbox_cluster_tables().front().parameters,
      {"form", "name", "software", "page_walks", "interruptions", "packetizer", "ring", "mailbox"});
  MailboxCluster cluster;
  cluster.name = object.text("name");
  read_blocks(object, &cluster, mailbox_cluster_tables());
  const std::vector<JsonObject> interruptions = object.objects("interruptions");
  for (std::size_t i = 0; i < interruptions.size(); ++i) {
    cluster.interruptions[i].name = interruptions[i].text("name");
  }
  return build_mailbox_cluster(std::move(cluster));
}

struct MachineParts::Impl {
  std::string origin;
  MachineBuilder builder;
  LinkTypes types;

  // A wire is two links, one per direction, each as fast as `parallel` links of its type.
  void add_wire(int a, int b, const LinkType& type, double parallel) {
    Link link = type.link;
    link.rate = Rate::from_gb_per_s(type.rate_gb_per_s * parallel);
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      link.from = from;
      link.to = to;
      builder.add_link(link);
    }
  }
  const LinkType& type_named(const std::string& name, const Checks& checks,
                             const std::string& field) const {
    const auto type = types.find(name);
    if (type == types.end()) {
      checks.fail_at(field, "is '{}', which is not in link_types", name);
    }
    return type->second;
  }
  void read_device(const JsonObject& device) {
    device.check_names({"name", "kind", "host", "forwards"});
    builder.add_device(
        {device.text("name"),
         kind_from(device.text("kind"), device.checks(), device.field_of("kind"), kDeviceKinds),
         static_cast<int>(device.whole("host", -1, kNumberMax)), device.truth("forwards")});
  }
  void read_wire(const JsonObject& wire) {
    wire.check_names({"between", "link_type", "parallel"});
    const LinkType& type =
        type_named(wire.text("link_type"), wire.checks(), wire.field_of("link_type"));
    const std::vector<int> between = wire.numbers("between", kNumberMax);
    if (between.size() != 2) wire.checks().fail_at(wire.field_of("between"), "must be two devices");
    add_wire(between[0], between[1], type, wire.number("parallel", kParallelMin, kParallelMax));
  }
  void read_costs(const JsonObject& object) {
    builder.set_gpu_cost(gpu_cost_from(object.object("gpu_cost")));
    if (!object.has("gpu_costs_of_hosts")) return;
    for (const JsonObject& group : object.objects("gpu_costs_of_hosts")) {
      group.check_names({"first_host", "hosts", "gpu_cost"});
      const GpuCost cost = gpu_cost_from(group.object("gpu_cost"));
      const auto first = static_cast<int>(group.whole("first_host", 0, kNumberMax));
      const auto hosts = static_cast<int>(group.whole("hosts", 1, kNumberMax));
      for (int host = first; host < first + hosts; ++host) {
        builder.set_gpu_cost_of_host(host, cost);
      }
    }
  }
};

MachineParts::MachineParts(std::string_view json, const std::string& origin) {
  const Json data = parsed(json, origin);
  const JsonObject object = description(data, "machine", origin);
  object.check_names({"form", "name", "link_types", "gpu_cost", "gpu_costs_of_hosts", "hash_seed",
                      "devices", "wires"});
  impl_ = std::make_unique<Impl>(Impl{origin, MachineBuilder(object.text("name")), {}});
  for (const JsonObject& device : object.objects("devices")) impl_->read_device(device);
  impl_->types = link_types_from(object);
  for (const JsonObject& wire : object.objects("wires")) impl_->read_wire(wire);
  impl_->read_costs(object);
  if (object.has("hash_seed")) {
    impl_->builder.set_hash_seed(
        static_cast<std::uint64_t>(object.whole("hash_seed", 0, kHashSeedMax)));
  }
}

MachineParts::~MachineParts() = default;

int MachineParts::add_device(std::string name, std::string_view kind, int host, bool forwards) {
  const Checks checks(impl_->origin);
  return impl_->builder.add_device(
      {std::move(name), kind_from(kind, checks, "kind", kDeviceKinds), host, forwards});
}

void MachineParts::add_wire(int a, int b, const std::string& link_type, double parallel) {
  const Checks checks(impl_->origin);
  if (!(parallel >= kParallelMin && parallel <= kParallelMax)) {
    checks.fail_at("parallel", "is {}; it must be {} to {}", parallel, kParallelMin, kParallelMax);
  }
  impl_->add_wire(a, b, impl_->type_named(link_type, checks, "link_type"), parallel);
}

std::shared_ptr<const Machine> MachineParts::build() && {
  return std::move(impl_->builder).build();
}

std::shared_ptr<const Machine> parse_machine(std::string_view json, const std::string& origin) {
  return MachineParts(json, origin).build();
}

std::string form_of(const std::string& name_or_file) {
  const Source source = source_of(name_or_file);
  const Json data = parsed(source.text, source.origin);
  return JsonObject(data, source.origin, "").text("form");
}

std::shared_ptr<const Chip> load_chip(const std::string& name_or_file) {
  return load(name_or_file, &parse_chip);
}
std::shared_ptr<const ChipCluster> load_chip_cluster(const std::string& name_or_file) {
  return load(name_or_file, &parse_chip_cluster);
}
std::shared_ptr<const Host> load_host(const std::string& name_or_file) {
  return load(name_or_file, &parse_host);
}
std::shared_ptr<const MailboxCluster> load_mailbox_cluster(const std::string& name_or_file) {
  return load(name_or_file, &parse_mailbox_cluster);
}
std::shared_ptr<const Machine> load_machine(const std::string& name_or_file) {
  return load(name_or_file, &parse_machine);
}

}  // namespace towpath::machine
