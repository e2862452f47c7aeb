// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "towpath/bindings/plan.hpp"
#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/execute/repeat.hpp"
#include "towpath/collective/schedule/plan.hpp"
#include "towpath/live/collectives.hpp"
#include "towpath/live/whole_arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using bindings::ByteArray;
using collective::Executor;
using collective::Plan;
using collective::Samples;
using live::LibraryReduction;
using live::Request;
using live::Span;
using transport::LiveTransport;
using transport::TransportError;

// Also owns its transport.
class Collectives {
 public:
  Collectives(LiveTransport& transport, double timeout_s)
      : transport_(transport), collectives_(transport) {
    transport.barrier(transport::timeout_from(timeout_s));
  }

  // The request in Python's terms.
  struct Asked {
    LibraryReduction how;
    Request request;
  };
  void prepare(Asked& asked, std::string_view collective, std::string_view type,
               std::string_view operation, int root, const ByteArray& input,
               const ByteArray& output) const {
    const auto known_type = transport::data_type_from(type);
    const auto known_operation = transport::reduction_operation_from(operation);
    if (!known_type) throw std::invalid_argument(fmt::format("'{}' is not a type", type));
    if (!known_operation) {
      throw std::invalid_argument(
          fmt::format("'{}' is not a reduction; choose sum, prod, min, max or avg", operation));
    }
    asked.how = {{*known_type, *known_operation}, transport_.ranks()};
    asked.request = request_of(collective, asked.how, root, span_of(input), span_of(output));
  }

  void run(const Request& request, double timeout_s) {
    collectives_.run(request, transport::timeout_from(timeout_s));
  }
  void synchronize(std::string statement, double timeout_s) {
    const Time timeout = transport::timeout_from(timeout_s);
    transport_.quiet(timeout);
    collectives_.synchronize(std::move(statement), timeout);
  }
  // A rank that makes another call never sends what this one waits for, so the ranks compare their
  // calls if one of them has waited for a second. The timeout begins after that.
  void run_announced(const Plan& plan, Executor& executor, const collective::Buffers& buffers,
                     double timeout_s) {
    const Time timeout = transport::timeout_from(timeout_s);
    const Time first = std::min(timeout, Time::from_seconds(1));
    collectives_.announce(collective::statement(plan));
    executor.start(buffers);
    try {
      executor.finish(first);
    } catch (const TransportError& error) {
      if (error.kind() != TransportError::Kind::timeout) throw;
      collectives_.compare_calls();
      if (first == timeout) throw;
      executor.finish(timeout);
    }
  }
  Samples measure(const Request& request, int times, double timeout_s) {
    Samples samples;
    Time begin = transport_.now();
    for (int i = 0; i < times; ++i) {
      collectives_.run(request, transport::timeout_from(timeout_s));
      const Time end = transport_.now();
      samples.add(end - begin);
      begin = end;
    }
    return samples;
  }

  static Span span_of(const ByteArray& array) {
    return {reinterpret_cast<std::byte*>(array.data()), array.size()};
  }

 private:
  LiveTransport& transport_;
  live::Collectives collectives_;
};

void bind_class(nb::module_& module) {
  nb::class_<Collectives>(module, "LiveCollectives",
                          "Collectives without a schedule, one after the other.")
      .def(
          "__init__",
          [](Collectives* self, LiveTransport& transport, double timeout_s) {
            nb::gil_scoped_release released;
            new (self) Collectives(transport, timeout_s);
          },
          "transport"_a, "timeout_s"_a, nb::keep_alive<1, 2>())
      .def(
          "run",
          [](Collectives& self, std::string_view collective, std::string_view type,
             std::string_view operation, int root, const ByteArray& input, const ByteArray& output,
             double timeout_s) {
            Collectives::Asked asked;
            self.prepare(asked, collective, type, operation, root, input, output);
            nb::gil_scoped_release released;
            self.run(asked.request, timeout_s);
          },
          "collective"_a, "type"_a, "operation"_a, "root"_a, "input"_a, "output"_a, "timeout_s"_a,
          "Runs a collective; arrays are uint8. Raises TransportError.")
      .def(
          "synchronize",
          [](Collectives& self, std::string statement, double timeout_s) {
            nb::gil_scoped_release released;
            self.synchronize(std::move(statement), timeout_s);
          },
          "statement"_a, "timeout_s"_a,
          "All puts of this rank are visible, and every rank has made the same statement. Raises\n"
          "TransportError.")
      .def(
          "run_announced",
          [](Collectives& self, const Plan& plan, Executor& executor, const ByteArray& input,
             const ByteArray& output, double timeout_s) {
            const collective::Buffers buffers = bindings::checked(plan, input, output);
            nb::gil_scoped_release released;
            self.run_announced(plan, executor, buffers, timeout_s);
          },
          "plan"_a, "executor"_a, "input"_a, "output"_a, "timeout_s"_a,
          "Runs a plan without a barrier before it. Raises TransportError: a disagreement if a\n"
          "rank makes another call.")
      .def(
          "measure",
          [](Collectives& self, std::string_view collective, std::string_view type,
             std::string_view operation, int root, const ByteArray& input, const ByteArray& output,
             int times, double timeout_s) {
            Collectives::Asked asked;
            self.prepare(asked, collective, type, operation, root, input, output);
            Samples samples;
            {
              nb::gil_scoped_release released;
              samples = self.measure(asked.request, times, timeout_s);
            }
            nb::list result;
            for (const Time sample : samples.values()) result.append(sample.us());
            return result;
          },
          "collective"_a, "type"_a, "operation"_a, "root"_a, "input"_a, "output"_a, "times"_a,
          "timeout_s"_a, "As run, `times` times back to back; durations in microseconds.");
}

}  // namespace

void bind_live_collectives(nb::module_& module) {
  module.def(
      "check_overlap",
      [](std::string_view collective, int rank, int ranks, const ByteArray& input,
         const ByteArray& output) {
        const LibraryReduction how{{}, ranks};
        Request request = live::request_of(collective, how, 0, Collectives::span_of(input),
                                           Collectives::span_of(output));
        request.name = collective;
        live::check_overlap(request, rank);
      },
      "collective"_a, "rank"_a, "ranks"_a, "input"_a, "output"_a,
      "Raises ConfigError unless the arrays are apart or a form of the collective in place.");
  bind_class(module);
}
