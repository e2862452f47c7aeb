// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "towpath/tenstorrent/host/host_cluster.hpp"
#include "towpath/tenstorrent/metalium/source_run.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::tenstorrent::metalium {
namespace {

using Pair = std::pair<int, int>;
machine::Coordinate coordinate(const Pair& pair) { return {pair.first, pair.second}; }

Processor processor_from(const std::string& name) {
  for (const Processor processor : {Processor::data_movement_0, Processor::data_movement_1,
                                    Processor::compute, Processor::ethernet}) {
    if (name == name_of(processor)) return processor;
  }
  throw std::invalid_argument(
      "'" + name +
      "' is not a processor; choose data_movement_0, data_movement_1, compute or ethernet");
}

// Number, offset, size, page size, format.
using Buffer = std::tuple<int, std::uint32_t, std::uint32_t, std::uint32_t, int>;

CircularBuffers buffers_from(const std::vector<Buffer>& rows) {
  CircularBuffers buffers;
  for (const auto& [number, offset, size_bytes, page_bytes, format] : rows) {
    if (number < 0 || number >= kCircularBuffers) {
      throw std::invalid_argument("there is no circular buffer " + std::to_string(number) +
                                  "; it must be 0 to 31");
    }
    if (buffers.size() <= static_cast<std::size_t>(number)) {
      buffers.resize(static_cast<std::size_t>(number) + 1);
    }
    buffers[static_cast<std::size_t>(number)] = {offset, size_bytes, page_bytes,
                                                 static_cast<std::uint8_t>(format)};
  }
  return buffers;
}

MemoryBlock block_from(int chip, const Pair& tile, std::uint64_t offset, const nb::bytes& bytes) {
  MemoryBlock block{.chip = chip, .tile = coordinate(tile), .offset = offset};
  block.bytes.resize(bytes.size());
  std::memcpy(block.bytes.data(), bytes.c_str(), bytes.size());
  return block;
}

nb::tuple shown(const KernelLog::From& from) {
  return nb::make_tuple(from.chip, Pair{from.core.x, from.core.y}, from.kernel);
}

nb::dict shown(const SourceResult& result) {
  nb::dict fields;
  nb::list times;
  nb::list zones;
  nb::list values;
  nb::list lines;
  nb::list after;
  for (const auto& kernel : result.kernels) times.append(nb::make_tuple(kernel.begin, kernel.end));
  for (const KernelLog::Zone& zone : result.log.zones) {
    zones.append(nb::make_tuple(shown(zone.from), zone.name, zone.begin, zone.end));
  }
  for (const KernelLog::Value& value : result.log.values) {
    values.append(nb::make_tuple(shown(value.from), value.name, value.value));
  }
  for (const KernelLog::Line& line : result.log.lines) {
    lines.append(nb::make_tuple(shown(line.from), line.text));
  }
  for (const MemoryBlock& block : result.after) {
    after.append(nb::bytes(reinterpret_cast<const char*>(block.bytes.data()), block.bytes.size()));
  }
  fields["kernels"] = times;
  fields["time_ps"] = result.time.ps();
  fields["zones"] = zones;
  fields["values"] = values;
  fields["lines"] = lines;
  fields["after"] = after;
  return fields;
}

SourceProgram program_with(std::vector<std::uint32_t> semaphores, RunOptions options,
                           const std::optional<std::pair<bool, bool>>& fabric) {
  SourceProgram program{
      .kernels = {}, .semaphores = std::move(semaphores), .options = std::move(options)};
  if (fabric) program.fabric = {fabric->first, fabric->second};
  return program;
}

void bind_program(nb::module_& module) {
  nb::class_<SourceProgram>(module, "SourceProgram",
                            "Kernels in source form, with the cores that they run on.")
      .def(
          "__init__",
          [](SourceProgram* self, std::vector<std::uint32_t> semaphores, std::uint64_t seed,
             std::int64_t cycles_max, bool finds_hazards,
             const std::optional<std::pair<bool, bool>>& fabric,
             std::vector<towpath::ethernet::LinkFaults> link_faults) {
            RunOptions options{
                .seed = seed, .cycles_max = cycles_max, .finds_hazards = finds_hazards};
            options.link_faults = std::move(link_faults);
            new (self)
                SourceProgram(program_with(std::move(semaphores), std::move(options), fabric));
          },
          nb::kw_only(), "semaphores"_a, "seed"_a = 1, "cycles_max"_a = 0, "finds_hazards"_a = true,
          "fabric"_a = nb::none(), "link_faults"_a = std::vector<towpath::ethernet::LinkFaults>(),
          "fabric: whether it is a mesh, and whether it has rings. link_faults: by the cluster's "
          "number of the link.")
      .def(
          "add_kernel",
          [](SourceProgram& program, const std::string& file, const std::string& text, int chip,
             Pair core, const std::string& processor, int noc, std::vector<std::uint32_t> args,
             std::vector<std::uint32_t> common_args, std::vector<std::uint32_t> compile_args,
             std::map<std::string, std::uint32_t> named_compile_args,
             std::map<std::string, std::string> defines,
             const std::vector<std::string>& include_folders,
             const std::vector<Buffer>& circular_buffers,
             const std::vector<std::tuple<std::size_t, int, int>>& connections) {
            KernelSource source{.file = file,
                                .text = text,
                                .compile_args = std::move(compile_args),
                                .named_compile_args = std::move(named_compile_args),
                                .defines = std::move(defines)};
            for (const std::string& folder : include_folders) {
              source.include_folders.emplace_back(folder);
            }
            program.kernels.push_back({.chip = chip,
                                       .core = coordinate(core),
                                       .processor = processor_from(processor),
                                       .noc_index = noc,
                                       .source = std::move(source),
                                       .runtime_args = std::move(args),
                                       .common_args = std::move(common_args),
                                       .circular_buffers = buffers_from(circular_buffers)});
            for (const auto& [position, to_chip, link] : connections) {
              program.kernels.back().connections.push_back({position, to_chip, link});
            }
          },
          "file"_a, nb::kw_only(), "text"_a = "", "chip"_a = 0, "core"_a,
          "processor"_a = "data_movement_0", "noc"_a = 0, "args"_a, "common_args"_a,
          "compile_args"_a, "named_compile_args"_a, "defines"_a, "include_folders"_a,
          "circular_buffers"_a, "connections"_a)
      .def(
          "write",
          [](SourceProgram& program, int chip, Pair tile, std::uint64_t offset,
             const nb::bytes& bytes) {
            program.before.push_back(block_from(chip, tile, offset, bytes));
          },
          "chip"_a, "tile"_a, "offset"_a, "bytes"_a)
      .def(
          "read",
          [](SourceProgram& program, int chip, Pair tile, std::uint64_t offset,
             std::uint64_t size_bytes) {
            MemoryBlock block{.chip = chip, .tile = coordinate(tile), .offset = offset};
            block.bytes.resize(size_bytes);
            program.after.push_back(std::move(block));
          },
          "chip"_a, "tile"_a, "offset"_a, "size_bytes"_a);
}

void bind_beside(nb::module_& module) {
  nb::class_<KernelsBeside>(module, "KernelsBeside",
                            "Kernels in source form on a host's chip, beside the host's calls.")
      .def(
          "__init__",
          [](KernelsBeside* self, HostCluster& cluster, int chip, const SourceProgram& program) {
            new (self) KernelsBeside(cluster.share_noc(chip), program);
          },
          "cluster"_a, "chip"_a, "program"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("is_over", &KernelsBeside::is_over)
      .def_prop_ro("result", [](const KernelsBeside& kernels) { return shown(kernels.result()); });
}

}  // namespace
}  // namespace towpath::tenstorrent::metalium

void bind_kernels(nb::module_& module) {
  using namespace towpath::tenstorrent::metalium;
  using towpath::machine::Chip;
  using towpath::machine::ChipCluster;
  bind_program(module);
  bind_beside(module);
  const auto run = [](std::shared_ptr<const ChipCluster> cluster, const SourceProgram& program) {
    SourceResult result;
    {
      const nb::gil_scoped_release unlocked;
      result = run_source_program(std::move(cluster), program);
    }
    return shown(result);
  };
  module.def("run_source_program", run, "cluster"_a, "program"_a);
  module.def(
      "run_source_program",
      [run](std::shared_ptr<const Chip> chip, const SourceProgram& program) {
        return run(cluster_of(std::move(chip)), program);
      },
      "chip"_a, "program"_a);
}
