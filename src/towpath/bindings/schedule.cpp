// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/schedule.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "towpath/collective/algorithms/algorithms.hpp"
#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/symmetry.hpp"
#include "towpath/transport/reduction.hpp"

// A Schedule and its parts are values in Python: reading ranks, blocks or steps returns copies, and
// assignment or addition stores one. schedule.rank(i) and schedule.step(...) copy only the
// requested part.

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::collective {
namespace {

using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;

template <typename Container>
decltype(auto) at(Container& container, std::size_t index, const char* noun) {
  if (index >= container.size()) {
    throw nb::index_error(
        fmt::format("{} {} does not exist; there are {}", noun, index, container.size()).c_str());
  }
  return container[index];
}

// Checks the divisors in Chunking. check_structure() has the error messages.
void check_divisors(const Schedule& schedule) {
  const bool is_divisible =
      !schedule.ranks.empty() && schedule.chunks != 0 &&
      (!works_on_parts(schedule.collective) || schedule.chunks % schedule.ranks.size() == 0);
  if (!is_divisible) check_structure(schedule);
}

void check_element_bytes(std::uint64_t element_bytes) {
  constexpr std::uint64_t kElementBytesMax = 16;
  if (element_bytes == 0 || element_bytes > kElementBytesMax) {
    throw nb::value_error(
        fmt::format("element_bytes is {}; it must be 1 to {}", element_bytes, kElementBytesMax)
            .c_str());
  }
}

template <typename Class>
void bind_copies(Class& bound) {
  using T = typename Class::Type;
  bound.def("__copy__", [](const T& self) { return T(self); })
      .def(
          "__deepcopy__", [](const T& self, nb::handle) { return T(self); }, "memo"_a)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"));
}

// The names of an enumeration whose last member is kLast.
template <auto kLast>
std::vector<std::string_view> names_up_to() {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(kLast); ++i) {
    names.push_back(name_of(static_cast<decltype(kLast)>(i)));
  }
  return names;
}

// The names are literals, so they end with a null.
template <auto kLast>
void bind_enum(nb::module_& module, const char* name) {
  nb::enum_<decltype(kLast)> bound(module, name);
  int value = 0;
  for (const std::string_view member : names_up_to<kLast>()) {
    bound.value(member.data(), static_cast<decltype(kLast)>(value++));
  }
}

// Names in command options and file fields.
void bind_words(nb::module_& module) {
  module.attr("COLLECTIVES") = nb::tuple(nb::cast(names_up_to<Collective::barrier>()));
  module.attr("PROTOCOLS") = nb::tuple(nb::cast(names_up_to<Protocol::ll128>()));
  module.attr("DATA_TYPES") = nb::tuple(nb::cast(names_up_to<transport::DataType::float64>()));
  module.attr("OPERATIONS") =
      nb::tuple(nb::cast(names_up_to<transport::ReductionOperation::avg>()));
  module.attr("CHANNELS_MAX") = kChannelsMax;
}

void bind_names(nb::module_& module) {
  bind_enum<Collective::barrier>(module, "Collective");
  nb::enum_<Protocol>(module, "Protocol")
      .value("simple", Protocol::simple)
      .value("ll", Protocol::ll)
      .value("ll128", Protocol::ll128);
  bind_enum<Rendezvous::peers>(module, "Rendezvous");
  bind_enum<Notification::deferred>(module, "Notification");
  bind_enum<Buffer::scratch>(module, "Buffer");
  bind_enum<StepType::pipeline>(module, "StepType");
  module.def("name_of", nb::overload_cast<Collective>(&name_of), "collective"_a);
  module.def("name_of", nb::overload_cast<Protocol>(&name_of), "protocol"_a);
  module.def("name_of", nb::overload_cast<Rendezvous>(&name_of), "rendezvous"_a);
  module.def("name_of", nb::overload_cast<Notification>(&name_of), "notification"_a);
  module.def("name_of", nb::overload_cast<Buffer>(&name_of), "buffer"_a);
  module.def("name_of", nb::overload_cast<StepType>(&name_of), "type"_a);
  module.def("collective_from", &collective_from, "name"_a);
  module.def("protocol_from", &protocol_from, "name"_a);
  module.def("is_one_sided", &is_one_sided, "type"_a);
  module.def("receives", &receives, "type"_a);
  module.def("sends", &sends, "type"_a);
  module.def("reads_source", &reads_source, "type"_a);
  module.def("writes_destination", &writes_destination, "type"_a);
}

void bind_step(nb::module_& module) {
  nb::class_<Step> step(module, "Step");
  step.def(
          "__init__",
          [](Step* self, StepType type, Buffer source, std::uint32_t source_chunk,
             Buffer destination, std::uint32_t destination_chunk, std::uint32_t count,
             bool publishes, std::int32_t depends_on_block, std::int32_t depends_on_step) {
            new (self) Step{type,      source,           destination,
                            publishes, source_chunk,     destination_chunk,
                            count,     depends_on_block, depends_on_step};
          },
          "type"_a, "source"_a = Buffer::input, "source_chunk"_a = 0,
          "destination"_a = Buffer::input, "destination_chunk"_a = 0, "count"_a = 0,
          "publishes"_a = false, "depends_on_block"_a = kNone, "depends_on_step"_a = kNone)
      .def_rw("type", &Step::type)
      .def_rw("source", &Step::source)
      .def_rw("source_chunk", &Step::source_chunk)
      .def_rw("destination", &Step::destination)
      .def_rw("destination_chunk", &Step::destination_chunk)
      .def_rw("count", &Step::count)
      .def_rw("publishes", &Step::publishes)
      .def_rw("depends_on_block", &Step::depends_on_block)
      .def_rw("depends_on_step", &Step::depends_on_step);
  bind_copies(step);
}

void bind_access(nb::module_& module) {
  nb::enum_<Holder>(module, "Holder")
      .value("own", Holder::own)
      .value("peer", Holder::peer)
      .value("group", Holder::group);
  nb::class_<Operand>(module, "Operand", "A range of a one-sided step, and whose memory it is in.")
      .def(
          "__init__",
          [](Operand* self, Holder holder, Buffer buffer, std::uint32_t chunk, std::int32_t number,
             bool is_packet) { new (self) Operand{holder, buffer, is_packet, number, chunk}; },
          "holder"_a, "buffer"_a, "chunk"_a, "number"_a = -1, "is_packet"_a = false)
      .def_ro("holder", &Operand::holder)
      .def_ro("buffer", &Operand::buffer)
      .def_ro("chunk", &Operand::chunk)
      .def_ro("number", &Operand::number)
      .def_ro("is_packet", &Operand::is_packet)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"));
  nb::class_<SignalEnd>(module, "SignalEnd", "One end of the way of signals between two ranks.")
      .def(nb::init<std::int32_t, std::int32_t>(), "peer"_a, "channel"_a)
      .def_ro("peer", &SignalEnd::peer)
      .def_ro("channel", &SignalEnd::channel)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"));
  nb::class_<Access>(module, "Access", "What a one-sided step needs beside its type and count.")
      .def(nb::init<>())
      .def_rw("sources", &Access::sources)
      .def_rw("destinations", &Access::destinations)
      .def_rw("part", &Access::part)
      .def_rw("parts", &Access::parts)
      .def_rw("is_port", &Access::is_port)
      .def_rw("ends", &Access::ends)
      .def_rw("is_relaxed", &Access::is_relaxed)
      .def_rw("signals", &Access::signals)
      .def_rw("flushes", &Access::flushes)
      .def_rw("semaphores", &Access::semaphores)
      .def_rw("barrier", &Access::barrier)
      .def_rw("barrier_blocks", &Access::barrier_blocks)
      .def_rw("unit_bytes", &Access::unit_bytes)
      .def_rw("chunks", &Access::chunks)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, arg: object, /) -> bool"));
}

void bind_programs(nb::module_& module) {
  nb::class_<ThreadBlock> block(module, "ThreadBlock");
  block
      .def(nb::init<std::int32_t, std::int32_t, std::int32_t, std::vector<Step>>(),
           "send_peer"_a = kNone, "receive_peer"_a = kNone, "channel"_a = 0,
           "steps"_a = std::vector<Step>{})
      .def_rw("send_peer", &ThreadBlock::send_peer)
      .def_rw("receive_peer", &ThreadBlock::receive_peer)
      .def_rw("channel", &ThreadBlock::channel)
      .def_prop_rw(
          "steps",
          [](const ThreadBlock& self) {
            return std::vector<Step>(self.steps.begin(), self.steps.end());
          },
          [](ThreadBlock& self, std::vector<Step> steps) { self.steps = std::move(steps); })
      .def(
          "add_step", [](ThreadBlock& self, const Step& step) { self.steps.push_back(step); },
          "step"_a)
      .def_prop_rw(
          "accesses", [](const ThreadBlock& self) { return self.accesses; },
          [](ThreadBlock& self, std::vector<Access> accesses) {
            self.accesses = std::move(accesses);
          },
          "Of the one-sided steps, in their order.")
      .def(
          "add_access",
          [](ThreadBlock& self, StepType type, const Access& access, std::uint32_t count) {
            Step step;
            step.type = type;
            step.source_chunk = static_cast<std::uint32_t>(self.accesses.size());
            step.count = count;
            self.accesses.push_back(access);
            self.steps.push_back(step);
          },
          "type"_a, "access"_a, "count"_a = 0, "Appends a one-sided step.");
  bind_copies(block);

  nb::class_<RankProgram> program(module, "RankProgram");
  program
      .def(nb::init<std::uint32_t, std::uint32_t, std::uint32_t, std::vector<ThreadBlock>>(),
           "input_chunks"_a = 0, "output_chunks"_a = 0, "scratch_chunks"_a = 0,
           "blocks"_a = std::vector<ThreadBlock>{})
      .def_rw("input_chunks", &RankProgram::input_chunks)
      .def_rw("output_chunks", &RankProgram::output_chunks)
      .def_rw("scratch_chunks", &RankProgram::scratch_chunks)
      .def_prop_rw(
          "blocks", [](const RankProgram& self) { return self.blocks; },
          [](RankProgram& self, std::vector<ThreadBlock> blocks) {
            self.blocks = std::move(blocks);
          })
      .def_rw("semaphores", &RankProgram::semaphores)
      .def(
          "add_block",
          [](RankProgram& self, const ThreadBlock& added) { self.blocks.push_back(added); },
          "block"_a);
  bind_copies(program);
}

template <typename AnySchedule>
decltype(auto) step_at(AnySchedule& schedule, std::size_t rank, std::size_t block,
                       std::size_t step) {
  auto& blocks = at(schedule.ranks, rank, "rank").blocks;
  return at(at(blocks, block, "thread block").steps, step, "step");
}

void bind_schedule_class(nb::module_& module) {
  nb::class_<Schedule> schedule(module, "Schedule");
  schedule
      .def(nb::init<std::string, Collective, Protocol, std::uint32_t, std::uint32_t, std::int32_t,
                    bool, bool, std::uint64_t, std::uint64_t, std::vector<std::uint32_t>,
                    std::vector<RankProgram>>(),
           "name"_a, "collective"_a, "protocol"_a = Protocol::simple, "channels"_a = 1,
           "chunks"_a = 1, "root"_a = 0, "in_place"_a = false, "out_of_place"_a = true,
           "size_bytes_min"_a = 0, "size_bytes_max"_a = 0,
           "pattern"_a = std::vector<std::uint32_t>{}, "ranks"_a = std::vector<RankProgram>{})
      .def_rw("name", &Schedule::name)
      .def_rw("collective", &Schedule::collective)
      .def_rw("protocol", &Schedule::protocol)
      .def_rw("channels", &Schedule::channels)
      .def_rw("chunks", &Schedule::chunks)
      .def_rw("root", &Schedule::root)
      .def_rw("in_place", &Schedule::in_place)
      .def_rw("out_of_place", &Schedule::out_of_place)
      .def_rw("size_bytes_min", &Schedule::size_bytes_min)
      .def_rw("size_bytes_max", &Schedule::size_bytes_max)
      .def_rw("pattern", &Schedule::pattern)
      .def_prop_rw(
          "ranks", [](const Schedule& self) { return self.ranks; },
          [](Schedule& self, std::vector<RankProgram> ranks) { self.ranks = std::move(ranks); })
      .def_rw("rendezvous", &Schedule::rendezvous)
      .def_rw("notification", &Schedule::notification)
      .def_rw("groups", &Schedule::groups)
      .def_rw("has_double_scratch", &Schedule::has_double_scratch)
      .def_rw("has_half_blocks", &Schedule::has_half_blocks)
      .def_rw("scratch_bytes_max", &Schedule::scratch_bytes_max)
      .def_prop_ro("rank_count", &Schedule::rank_count)
      .def(
          "add_rank",
          [](Schedule& self, const RankProgram& program) { self.ranks.push_back(program); },
          "program"_a)
      .def(
          "rank",
          [](const Schedule& self, std::size_t rank) { return at(self.ranks, rank, "rank"); },
          "rank"_a)
      .def(
          "step",
          [](const Schedule& self, std::size_t rank, std::size_t block, std::size_t index) {
            return step_at(self, rank, block, index);
          },
          "rank"_a, "block"_a, "index"_a)
      .def(
          "set_step",
          [](Schedule& self, std::size_t rank, std::size_t block, std::size_t index,
             const Step& step) { step_at(self, rank, block, index) = step; },
          "rank"_a, "block"_a, "index"_a, "step"_a);
  bind_copies(schedule);
}

void bind_schedule_functions(nb::module_& module) {
  nb::exception<ScheduleError>(module, "ScheduleError", PyExc_ValueError);
  module.attr("NONE") = kNone;
  module.def("check_structure", &check_structure, "schedule"_a, ReleaseGil(),
             "Raises ScheduleError, one sentence, unless the schedule makes sense as a text.");
  module.def("fingerprint", &fingerprint, "schedule"_a, ReleaseGil());
  module.def("step_count", &step_count, "schedule"_a);
  module.def("rotation_period", &rotation_period, "schedule"_a,
             "The least number of ranks by which the ranks can be rotated so that each does what\n"
             "the one in its place did; all ranks if there is none.");
  module.def("has_one_sided_steps", &has_one_sided_steps, "schedule"_a);
  module.def(
      "chunks_in",
      [](const Schedule& schedule, int rank, Buffer buffer) {
        at(schedule.ranks, static_cast<std::size_t>(rank), "rank");
        return chunks_in(schedule, rank, buffer);
      },
      "schedule"_a, "rank"_a, "buffer"_a);
  module.def(
      "shared_chunk",
      [](const Schedule& schedule, int rank, Buffer buffer, std::uint32_t chunk) {
        at(schedule.ranks, static_cast<std::size_t>(rank), "rank");
        return shared_chunk(schedule, rank, buffer, chunk);
      },
      "schedule"_a, "rank"_a, "buffer"_a, "chunk"_a);
}

void bind_chunking(nb::module_& module) {
  nb::class_<FifoLimits>(module, "FifoLimits")
      .def_ro("slots", &FifoLimits::slots)
      .def_ro("slots_per_transfer", &FifoLimits::slots_per_transfer)
      .def_ro("slices_per_transfer", &FifoLimits::slices_per_transfer)
      .def_ro("transfer_bytes_max", &FifoLimits::transfer_bytes_max)
      .def_ro("slice_bytes_min", &FifoLimits::slice_bytes_min);
  nb::class_<Range>(module, "Range")
      .def_ro("offset", &Range::offset)
      .def_ro("count", &Range::count);
  nb::class_<Chunking>(module, "Chunking")
      .def(
          "__init__",
          [](Chunking* self, const Schedule& schedule, std::uint64_t elements,
             std::uint64_t element_bytes) {
            check_divisors(schedule);
            check_element_bytes(element_bytes);
            new (self) Chunking(schedule, elements, element_bytes);
          },
          "schedule"_a, "elements"_a, "element_bytes"_a)
      .def_prop_ro("elements", &Chunking::elements)
      .def_prop_ro("part_elements", &Chunking::part_elements)
      .def_prop_ro("element_bytes", &Chunking::element_bytes)
      .def_prop_ro("chunk_elements", &Chunking::chunk_elements)
      .def_prop_ro("iterations", &Chunking::iterations)
      .def_prop_ro("chunks_per_transfer", &Chunking::chunks_per_transfer)
      .def_prop_ro("fifo", &Chunking::fifo)
      .def("transfers", &Chunking::transfers, "count"_a)
      .def("nominal", &Chunking::nominal, "count"_a, "iteration"_a)
      .def("range",
           nb::overload_cast<Buffer, std::uint32_t, std::uint32_t, std::uint64_t>(&Chunking::range,
                                                                                  nb::const_),
           "buffer"_a, "chunk"_a, "count"_a, "iteration"_a = 0)
      .def("slices", &Chunking::slices, "transfer_elements"_a)
      .def("scratch_elements", &Chunking::scratch_elements, "scratch_chunks"_a);
  module.def("fifo_limits", nb::overload_cast<Protocol>(&fifo_limits), "protocol"_a);
  module.def(
      "wire_expansion",
      [](Protocol protocol) {
        const Expansion expansion = wire_expansion(protocol);
        return nb::make_tuple(expansion.numerator, expansion.denominator);
      },
      "protocol"_a, "Bytes on the wire per byte of payload, as (numerator, denominator).");
  module.def("works_on_parts", &works_on_parts, "collective"_a);
  module.def("element_granularity", &element_granularity, "schedule"_a);
  module.def(
      "smallest_elements_for",
      [](const Schedule& schedule, std::uint64_t element_bytes, std::uint32_t chunks_per_transfer) {
        check_divisors(schedule);
        check_element_bytes(element_bytes);
        return smallest_elements_for(schedule, element_bytes, chunks_per_transfer);
      },
      "schedule"_a, "element_bytes"_a, "chunks_per_transfer"_a);
}

void bind_algorithms(nb::module_& module) {
  bind_enum<Reach::multicast>(module, "Reach");
  nb::class_<Algorithm>(module, "Algorithm")
      .def_ro("name", &Algorithm::name)
      .def_ro("collective", &Algorithm::collective)
      .def_ro("description", &Algorithm::description)
      .def_ro("cost", &Algorithm::cost)
      .def_ro("needs_grid", &Algorithm::needs_grid)
      .def_ro("reach", &Algorithm::reach);
  module.def("algorithms",
             [] { return std::vector<Algorithm>(algorithms().begin(), algorithms().end()); });
  module.def(
      "algorithm_names",
      [](std::optional<Collective> collective) {
        std::vector<std::string_view> names;
        for (const Algorithm& algorithm : algorithms()) {
          if (!collective || algorithm.collective == *collective) {
            names.push_back(algorithm.name);
          }
        }
        return names;
      },
      "collective"_a = nb::none(), "The algorithms for a collective, or all of them.");
  const AlgorithmOptions defaults;
  module.def(
      "make_schedule",
      [](const std::string& algorithm, int ranks, int channels, Protocol protocol, int root,
         int gpus_per_host, int chunks_per_channel, std::vector<std::vector<int>> rings,
         int columns, bool row_rings, bool column_rings, std::vector<std::vector<int>> trees,
         int reducers, std::vector<std::uint32_t> pattern) {
        return make_schedule(
            algorithm,
            {ranks, channels, protocol, root, gpus_per_host, chunks_per_channel, std::move(rings),
             columns, row_rings, column_rings, std::move(trees), reducers, std::move(pattern)});
      },
      "algorithm"_a, nb::kw_only(), "ranks"_a, "channels"_a = defaults.channels,
      "protocol"_a = defaults.protocol, "root"_a = defaults.root,
      "gpus_per_host"_a = defaults.gpus_per_host,
      "chunks_per_channel"_a = defaults.chunks_per_channel,
      "rings"_a = std::vector<std::vector<int>>{}, "columns"_a = defaults.columns,
      "row_rings"_a = defaults.row_rings, "column_rings"_a = defaults.column_rings,
      "trees"_a = std::vector<std::vector<int>>{}, "reducers"_a = defaults.reducers,
      "pattern"_a = std::vector<std::uint32_t>{}, ReleaseGil(),
      "Raises ValueError, one sentence, for options that are not possible.");
  module.def("rail_rings", &rail_rings, "hosts"_a, "gpus_per_host"_a, "channels"_a,
             "Ranks in ring order, one ring per channel, that leave and enter hosts on one rail.");
}

}  // namespace
}  // namespace towpath::collective

void bind_schedule(nb::module_& module) {
  using namespace towpath::collective;
  bind_names(module);
  bind_words(module);
  bind_access(module);
  bind_step(module);
  bind_programs(module);
  bind_schedule_class(module);
  bind_schedule_functions(module);
  bind_chunking(module);
  bind_algorithms(module);
}
