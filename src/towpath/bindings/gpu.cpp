// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "towpath/bindings/arrays.hpp"
#include "towpath/gpu/compiler.hpp"
#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/run/live.hpp"
#include "towpath/gpu/run/simulated.hpp"
#include "towpath/gpu/source_step.hpp"
#include "towpath/live/connect.hpp"
#include "towpath/transport/shm/shm_transport.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using gpu::KernelError;
using gpu::Pe;
using gpu::SimulatedPes;
using Words = std::vector<std::uint64_t>;

using Table = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;

// Rows of equal length, stored consecutively.
class Rows {
 public:
  explicit Rows(std::size_t columns) : columns_(columns) {}
  void add(std::initializer_list<std::int64_t> row) {
    values_.insert(values_.end(), row.begin(), row.end());
  }
  void add(std::int64_t value) { values_.push_back(value); }
  Table table() {
    const std::size_t rows = values_.size() / columns_;
    return bindings::owned<Table>(std::move(values_), {rows, columns_});
  }

 private:
  std::size_t columns_;
  std::vector<std::int64_t> values_;
};

std::int64_t whole(std::uint64_t value) { return static_cast<std::int64_t>(value); }

Table spans_of(const gpu::Profile& profile) {
  Rows rows(10);
  profile.spans().for_each([&](const gpu::Profile::Span& span) {
    rows.add({span.track, static_cast<int>(span.activity), span.name, span.peer, span.calls,
              span.begin.ps(), span.end.ps(), whole(span.size_bytes), whole(span.woken_by.first),
              whole(span.woken_by.size_bytes)});
  });
  return rows.table();
}

Table transfers_of(const gpu::Profile& profile) {
  Rows rows(13);
  profile.transfers().for_each([&](const gpu::Profile::Transfer& transfer) {
    rows.add({transfer.track, static_cast<int>(transfer.activity), transfer.name, transfer.peer,
              transfer.calls, transfer.begin.ps(), transfer.done.ps(), transfer.landed.ps(),
              whole(transfer.size_bytes), whole(transfer.target.first),
              whole(transfer.target.size_bytes), whole(transfer.signal.first),
              whole(transfer.signal.size_bytes)});
  });
  return rows.table();
}

Table work_of(const gpu::Profile& profile) {
  Rows rows(10);
  profile.work().for_each([&](const gpu::Profile::StreamWork& work) {
    rows.add({work.pe, work.stream, work.name, work.queued.ps(), work.begin.ps(), work.end.ps(),
              whole(work.size_bytes), whole(work.blocks), work.threads, work.is_kernel ? 1 : 0});
  });
  return rows.table();
}

Table tracks_of(const gpu::Profile& profile) {
  Rows rows(5 + gpu::kActivities);
  for (const gpu::Profile::Track& track : profile.tracks()) {
    rows.add({track.pe, track.stream, track.block, track.is_kernel ? 1 : 0, whole(track.spans)});
    for (const Time& time : track.times) rows.add(time.ps());
  }
  return rows.table();
}

// A profile as arrays of 64-bit integers, one row per record. python/towpath/kernels/profile.py
// names the columns. Times are in picoseconds.
nb::dict profile_of(const gpu::Profile& profile) {
  std::vector<std::string> activities;
  for (std::size_t i = 0; i < gpu::kActivities; ++i) {
    activities.emplace_back(gpu::name_of(static_cast<gpu::Activity>(i)));
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (const gpu::Profile::Name& name : profile.names()) names.emplace_back(name.text, name.place);
  nb::dict found;
  found["activities"] = nb::cast(activities);
  found["names"] = nb::cast(names);
  found["spans"] = spans_of(profile);
  found["transfers"] = transfers_of(profile);
  found["work"] = work_of(profile);
  found["tracks"] = tracks_of(profile);
  found["dropped"] = nb::make_tuple(profile.spans().dropped(), profile.transfers().dropped(),
                                    profile.work().dropped());
  return found;
}

// Also has the traffic of each link in each interval.
nb::dict profile_of(gpu::SimulatedPes& pes) {
  nb::dict found = profile_of(*pes.profile());
  const gpu_links::Network& network = pes.network();
  const machine::Machine& machine = network.machine();
  const gpu_links::LinkHistory& history = *pes.link_history();
  constexpr const char* kKinds[] = {"nvlink", "pcie", "network", "socket"};
  const std::vector<gpu_links::LinkLoad>& loads = network.loads();
  nb::list links;
  for (std::size_t i = 0; i < machine.links().size(); ++i) {
    const machine::Link& link = machine.links()[i];
    const gpu_links::LinkLoad& load = loads[i];
    if (load.bytes == Bytes(0)) continue;
    const std::vector<std::uint64_t>& carried = history.carried(i);
    links.append(nb::make_tuple(
        machine.devices()[static_cast<std::size_t>(link.from)].name,
        machine.devices()[static_cast<std::size_t>(link.to)].name,
        kKinds[static_cast<int>(link.kind)], link.rate.bytes_per_second(), load.bytes.count(),
        load.busy.ps(),
        bindings::column_of(std::vector<std::int64_t>(carried.begin(), carried.end()))));
  }
  found["links"] = links;
  found["interval_ps"] = history.interval().ps();
  Rows latencies(static_cast<std::size_t>(pes.pes()));
  for (int from = 0; from < pes.pes(); ++from) {
    for (int to = 0; to < pes.pes(); ++to) latencies.add(pes.latency(from, to).ps());
  }
  found["latency_ps"] = latencies.table();
  // A CPU proxy forwards messages to other hosts one at a time.
  const machine::KernelCost& cost = gpu::kernel_cost(machine);
  found["proxy_message_ps"] = cost.gpu_initiated_adapters ? 0 : cost.proxy_message.ps();
  std::vector<std::int64_t> hosts;
  for (int pe = 0; pe < pes.pes(); ++pe) hosts.push_back(machine.host_of_rank(pe));
  found["hosts"] = bindings::column_of(std::move(hosts));
  found["end_ps"] = pes.finished_at().ps();
  return found;
}

void translate_gpu_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const KernelError& error) {
    const nb::module_ errors = nb::module_::import_("towpath.errors");
    const auto raise = [&](const char* name, auto&&... fields) {
      const nb::object type = errors.attr(name);
      const nb::object raised = type(error.what(), fields...);
      PyErr_SetObject(type.ptr(), raised.ptr());
    };
    switch (error.kind()) {
      case KernelError::Kind::usage: return raise("ConfigError");
      case KernelError::Kind::compilation: return raise("CompilationError");
      case KernelError::Kind::deadlock: return raise("DeadlockError");
      case KernelError::Kind::hazard:
        return raise("HazardError", "hazard"_a = gpu::name_of(error.hazard()));
    }
  }
}

// A limit of kernels. Infinity means no limit.
Time limit_from(double seconds) {
  const Time limit = transport::timeout_from(seconds);
  return limit == Time::max() ? Time() : limit;
}

const char* name_of(gpu::abi::ParameterKind kind) {
  constexpr const char* kNames[] = {"pointer", "signed", "unsigned", "floating", "other"};
  return kNames[static_cast<int>(kind)];
}

const gpu::abi::Kernel& kernel_of(const Pe& pe, const std::string& name) {
  const gpu::abi::Kernel* const kernel = pe.object().find_kernel(name);
  if (kernel != nullptr) return *kernel;
  throw KernelError(
      KernelError::Kind::usage,
      fmt::format("the source has no kernel '{}'; name an instance of a template in `kernels`",
                  name));
}

// The kind and size of each parameter.
std::vector<std::pair<std::string, int>> parameters_of(SimulatedPes& pes, const std::string& name) {
  const gpu::abi::Kernel& kernel = kernel_of(pes.pe(0), name);
  std::vector<std::pair<std::string, int>> parameters;
  for (int i = 0; i < kernel.parameters; ++i) {
    parameters.emplace_back(name_of(kernel.parameter[i].kind), kernel.parameter[i].size_bytes);
  }
  return parameters;
}

constexpr gpu::abi::Site kPython{"Python", 0, "launch"};
constexpr gpu::abi::Site kSymmetric{nullptr, 0, "SimulatedGpus.symmetric"};

// The address of symmetric memory on each PE.
Words allocate(SimulatedPes& pes, std::uint64_t size_bytes) {
  Words addresses(static_cast<std::size_t>(pes.pes()));
  pes.run([&](Pe& pe) {
    pe.initialize(-1, -1, kPython);
    addresses[static_cast<std::size_t>(pe.rank())] =
        reinterpret_cast<std::uintptr_t>(pe.symmetric_malloc(size_bytes, 1, true, kSymmetric));
  });
  return addresses;
}

void release(SimulatedPes& pes, const Words& addresses) {
  pes.run([&](Pe& pe) {
    pe.symmetric_free(reinterpret_cast<void*>(addresses.at(static_cast<std::size_t>(pe.rank()))),
                      kSymmetric);
  });
}

// Runs a function of the source as this PE's host program and waits for its streams.
void call(gpu::LivePe& live, const std::string& name, Words words) {
  live.run([&](Pe& pe) {
    const gpu::abi::Kernel& function = kernel_of(pe, name);
    if (words.size() != static_cast<std::size_t>(function.parameters)) {
      throw KernelError(KernelError::Kind::usage,
                        fmt::format("'{}' takes {} arguments; {} were given", name,
                                    function.parameters, words.size()));
    }
    pe.call_host(function, words);
  });
}

// Microseconds from the call to the end of the last kernel. A PE without arguments launches no
// kernel.
double launch(SimulatedPes& pes, const std::string& name, std::vector<unsigned> grid,
              std::vector<unsigned> block, std::uint64_t shared_bytes,
              const std::vector<std::optional<Words>>& arguments) {
  gpu::abi::Configuration configuration{};
  configuration.grid = {grid.at(0), grid.at(1), grid.at(2)};
  configuration.block = {block.at(0), block.at(1), block.at(2)};
  configuration.shared_bytes = shared_bytes;
  const Time begin = pes.simulation().now();
  pes.run([&](Pe& pe) {
    const gpu::abi::Kernel& kernel = kernel_of(pe, name);
    const std::optional<Words>& own = arguments.at(static_cast<std::size_t>(pe.rank()));
    if (!own) return;
    Words words = *own;
    std::vector<void*> places;
    for (std::uint64_t& word : words) places.push_back(&word);
    if (pe.launch_kernel(kernel, configuration, places.data(), false) != 0) {
      throw KernelError(
          KernelError::Kind::usage,
          "a grid and a block must have at least one element, and a block at most 1024");
    }
  });
  return (pes.finished_at() - begin).us();
}

nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> bytes_at(nb::handle pes, std::uint64_t address,
                                                           std::uint64_t size_bytes) {
  return {reinterpret_cast<std::uint8_t*>(address),
          {static_cast<std::size_t>(size_bytes)},
          nb::borrow(pes)};
}

void bind_simulated(nb::module_& module) {
  using SharedMachine = std::shared_ptr<machine::Machine>;
  nb::class_<SimulatedPes>(module, "SimulatedPes",
                           "The PEs of a compiled CUDA source on a described machine.")
      .def(
          "__init__",
          [](SimulatedPes* self, const SharedMachine& machine, const std::string& object, int pes,
             std::uint64_t seed, std::size_t profile_records_max, double kernel_limit_s,
             bool checks_races) {
            new (self) SimulatedPes(machine, object,
                                    {.pes = pes,
                                     .seed = seed,
                                     .profile_records_max = profile_records_max,
                                     .kernel_limit = limit_from(kernel_limit_s),
                                     .checks_races = checks_races});
          },
          "machine"_a, "object"_a, "pes"_a, "seed"_a = 1, "profile_records_max"_a = 0,
          "kernel_limit_s"_a = gpu::kKernelLimit.seconds(), "checks_races"_a = false,
          "Raises ValueError.")
      .def(
          "profile",
          [](SimulatedPes& pes) -> std::optional<nb::dict> {
            if (pes.profile() == nullptr) return std::nullopt;
            return profile_of(pes);
          },
          "What happened so far; None where nothing is recorded.")
      .def_prop_ro("pes", &SimulatedPes::pes)
      .def_prop_ro("remarks",
                   [](SimulatedPes& pes) {
                     return std::vector<std::string>(pes.remarks().begin(), pes.remarks().end());
                   })
      .def_prop_ro("finished_at_us", [](SimulatedPes& pes) { return pes.finished_at().us(); })
      .def("run_main", &SimulatedPes::run_main, "arguments"_a,
           nb::call_guard<nb::gil_scoped_release>(),
           "The highest status that main() returns on a PE.")
      .def("parameters", &parameters_of, "kernel"_a)
      .def("allocate", &allocate, "size_bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("release", &release, "addresses"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("launch", &launch, "kernel"_a, "grid"_a, "block"_a, "shared_bytes"_a, "arguments"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("bytes_at", &bytes_at, "address"_a, "size_bytes"_a);
}

void bind_live(nb::module_& module) {
  nb::class_<gpu::LivePe>(module, "LivePe", "This process's PE of a compiled CUDA source.")
      .def(
          "__init__",
          [](gpu::LivePe* self, transport::LiveTransport& transport, const std::string& object,
             double timeout_s) {
            new (self)
                gpu::LivePe(transport, object,
                            {.timeout = transport::timeout_from(timeout_s),
                             .heap_bytes = transport::shm::default_heap_bytes(transport.ranks()),
                             .kernel_limit = {}});
          },
          "transport"_a, "object"_a, "timeout_s"_a, nb::keep_alive<1, 2>())
      .def("call", &call, "function"_a, "arguments"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Runs a function of the source, each argument the 8 bytes that begin with it.");
}

}  // namespace

void bind_gpu(nb::module_& module) {
  nb::register_exception_translator(&translate_gpu_error);
  bind_simulated(module);
  bind_live(module);
  module.def(
      "compile_cuda",
      [](const std::string& source, const std::string& include, std::vector<std::string> kernels,
         std::vector<std::string> flags, bool counts_accesses) {
        return gpu::compile(source, {.include = include,
                                     .kernels = std::move(kernels),
                                     .flags = std::move(flags),
                                     .counts_accesses = counts_accesses})
            .string();
      },
      "source"_a, "include"_a, "kernels"_a, "flags"_a, "counts_accesses"_a,
      nb::call_guard<nb::gil_scoped_release>(), "The file of the compiled object.");
  module.def(
      "translate_cuda",
      [](const std::string& preprocessed, const std::vector<std::string>& kernels) {
        return gpu::cpp_from_cuda(preprocessed, kernels, true);
      },
      "preprocessed"_a, "kernels"_a, nb::call_guard<nb::gil_scoped_release>(),
      "The C++ of a preprocessed CUDA source, for virtual GPUs.");
  module.def(
      "run_cuda_live",
      [](transport::LiveTransport& transport, const std::string& object,
         const std::vector<std::string>& arguments, double timeout_s,
         std::size_t profile_records_max, double kernel_limit_s) {
        std::unique_ptr<gpu::Profile> profile;
        if (profile_records_max > 0) {
          profile = std::make_unique<gpu::Profile>([&transport] { return transport.now(); },
                                                   profile_records_max);
        }
        int status = 0;
        {
          const nb::gil_scoped_release released;
          gpu::LivePe pe(transport, object,
                         {.timeout = transport::timeout_from(timeout_s),
                          .heap_bytes = transport::shm::default_heap_bytes(transport.ranks()),
                          .profile = profile.get(),
                          .kernel_limit = limit_from(kernel_limit_s)});
          status = pe.run_main(arguments);
        }
        nb::object recorded = nb::none();
        if (profile != nullptr) recorded = profile_of(*profile);
        return nb::make_tuple(status, recorded);
      },
      "transport"_a, "object"_a, "arguments"_a, "timeout_s"_a, "profile_records_max"_a = 0,
      "kernel_limit_s"_a = gpu::kKernelLimit.seconds(),
      "The status of main() on this rank, and its profile; None where nothing is recorded.");
}
