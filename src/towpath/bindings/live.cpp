// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "towpath/bindings/plan.hpp"
#include "towpath/collective/execute/executor.hpp"
#include "towpath/collective/execute/repeat.hpp"
#include "towpath/live/connect.hpp"
#include "towpath/live/group_api.h"
#include "towpath/transport/transport.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using bindings::ByteArray;
using collective::Executor;
using collective::Plan;
using transport::Comparison;
using transport::FailureNotice;
using transport::LiveTransport;
using transport::SignalOperation;
using transport::TransportError;

// Maps None to kNoPeer.
int peer_from(std::optional<int> peer) { return peer.value_or(transport::kNoPeer); }

// Lets the interpreter handle signals during a rank's wait. Only its main thread does.
void look_at_signals() {
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Comparison comparison_from(std::string_view name) {
  if (name == "==") return Comparison::equal;
  if (name == "!=") return Comparison::not_equal;
  if (name == ">=") return Comparison::greater_equal;
  throw std::invalid_argument(fmt::format("comparison is '{}'; choose '==', '!=' or '>='", name));
}

SignalOperation operation_from(std::string_view name) {
  if (name == "set") return SignalOperation::set;
  if (name == "add") return SignalOperation::add;
  throw std::invalid_argument(fmt::format("operation is '{}'; choose 'set' or 'add'", name));
}

// A view of this rank's heap that keeps the transport alive.
nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> heap_bytes_at(nb::handle transport,
                                                                transport::Offset offset,
                                                                std::uint64_t size_bytes) {
  auto& self = nb::cast<LiveTransport&>(transport);
  auto* const data = reinterpret_cast<std::uint8_t*>(self.data(offset));
  return {data, {static_cast<std::size_t>(size_bytes)}, nb::borrow(transport)};
}

void bind_memory(nb::class_<LiveTransport>& type) {
  type.def("allocate", &LiveTransport::allocate, "size_bytes"_a,
           "The offset of new symmetric memory; every rank makes the same calls in the same order.")
      .def("release", &LiveTransport::release, "offset"_a)
      .def("allocate_signals", &LiveTransport::allocate_signals, "count"_a = 1,
           "The first of `count` new signals.")
      .def("release_signals", &LiveTransport::release_signals, "first"_a)
      .def("signal_fetch", &LiveTransport::signal_fetch, "signal"_a)
      .def("bytes_at", &heap_bytes_at, "offset"_a, "size_bytes"_a,
           "uint8 array over this rank's copy of the heap.")
      .def(
          "address_of",
          [](LiveTransport& self, transport::Offset offset) {
            return reinterpret_cast<std::uintptr_t>(self.data(offset));
          },
          "offset"_a, "Address of an offset of this rank's copy of the heap.");
}

void bind_data_path(nb::class_<LiveTransport>& type) {
  type.def(
          "put",
          [](LiveTransport& self, int peer, transport::Offset remote, const ByteArray& source,
             double timeout_s) {
            nb::gil_scoped_release released;
            self.put(peer, remote, {source.data(), source.size()},
                     transport::timeout_from(timeout_s));
          },
          "peer"_a, "remote"_a, "source"_a, "timeout_s"_a)
      .def(
          "put_signal",
          [](LiveTransport& self, int peer, transport::Offset remote, const ByteArray& source,
             transport::Signal signal, std::uint64_t value, std::string_view operation,
             double timeout_s) {
            const SignalOperation how = operation_from(operation);
            nb::gil_scoped_release released;
            self.put_signal(peer, remote, {source.data(), source.size()}, {signal, value, how},
                            transport::timeout_from(timeout_s));
          },
          "peer"_a, "remote"_a, "source"_a, "signal"_a, "value"_a, "operation"_a, "timeout_s"_a)
      .def(
          "get",
          [](LiveTransport& self, int peer, transport::Offset remote, const ByteArray& target,
             double timeout_s) {
            nb::gil_scoped_release released;
            self.get(peer, remote, target.data(), target.size(),
                     transport::timeout_from(timeout_s));
          },
          "peer"_a, "remote"_a, "target"_a, "timeout_s"_a)
      .def(
          "wait_signal",
          [](LiveTransport& self, transport::Signal signal, std::string_view comparison,
             std::uint64_t value, double timeout_s, std::optional<int> peer) {
            const Comparison how = comparison_from(comparison);
            nb::gil_scoped_release released;
            self.signal_wait_until(signal, how, value, transport::timeout_from(timeout_s),
                                   peer_from(peer));
          },
          "signal"_a, "comparison"_a, "value"_a, "timeout_s"_a, "peer"_a = nb::none())
      .def("fence", &LiveTransport::fence)
      .def(
          "quiet",
          [](LiveTransport& self, double timeout_s) {
            nb::gil_scoped_release released;
            self.quiet(transport::timeout_from(timeout_s));
          },
          "timeout_s"_a);
}

void bind_transport(nb::module_& module) {
  nb::class_<LiveTransport> type(module, "LiveTransport",
                                 "One rank's one-sided view of the others.");
  type.def_prop_ro("rank", &LiveTransport::rank)
      .def_prop_ro("ranks", &LiveTransport::ranks)
      .def_prop_ro(
          "reaches_all",
          [](const LiveTransport& self) {
            for (int peer = 0; peer < self.ranks(); ++peer) {
              if (!self.is_addressable(peer)) return false;
            }
            return true;
          },
          "Whether this rank loads from and stores to the memory of all others.")
      .def_prop_ro("activity", &LiveTransport::activity, "Grows while this rank makes progress.")
      .def(
          "barrier",
          [](LiveTransport& self, double timeout_s) {
            nb::gil_scoped_release released;
            self.barrier(transport::timeout_from(timeout_s));
          },
          "timeout_s"_a)
      .def(
          "agree",
          [](LiveTransport& self, std::string_view statement, double timeout_s) {
            nb::gil_scoped_release released;
            self.agree(statement, transport::timeout_from(timeout_s));
          },
          "statement"_a, "timeout_s"_a,
          "Returns when every rank said the same; otherwise raises TransportError on all of them.")
      .def("leave", &LiveTransport::leave, "This rank leaves in good order; nothing follows.")
      .def(
          "abandon",
          [](LiveTransport& self, const std::string& what, std::optional<int> culprit) {
            self.abandon(what, peer_from(culprit));
          },
          "what"_a, "culprit"_a = nb::none(),
          "Notifies all others that this rank gives up. `what` continues \"rank N\". If the last\n"
          "TransportError named `culprit`, they receive the failure of that peer instead.");
  bind_memory(type);
  bind_data_path(type);
}

void bind_connect(nb::module_& module) {
  nb::class_<FailureNotice>(module, "FailureNotice",
                            "A failure of another rank, from the launcher to a waiting rank.")
      .def(nb::init<>())
      .def(
          "post",
          [](FailureNotice& notice, int culprit, std::string what) {
            notice.post({culprit, std::move(what)});
          },
          "culprit"_a, "what"_a,
          "Ends the waits of the rank with a TransportError; `what` continues \"rank N\".");
  module.def("live_transports", &live::names,
             "The live transports by name; the first one is the default.");
  module.def(
      "connect_live",
      [](const std::string& name, std::string rendezvous, int rank, int ranks,
         std::uint64_t heap_bytes, std::uint32_t signals, double timeout_s,
         std::shared_ptr<FailureNotice> notice, std::string token) {
        transport::LiveOptions options;
        options.rendezvous = std::move(rendezvous);
        options.token = std::move(token);
        options.rank = rank;
        options.ranks = ranks;
        options.heap_bytes = heap_bytes;
        if (signals > 0) options.signals = signals;
        options.timeout = transport::timeout_from(timeout_s);
        options.notice = std::move(notice);
        options.on_look = look_at_signals;
        nb::gil_scoped_release released;
        return live::connect(name, options);
      },
      "transport"_a, "rendezvous"_a, "rank"_a, "ranks"_a, nb::kw_only(), "heap_bytes"_a = 0,
      "signals"_a = 0, "timeout_s"_a = 30.0, "notice"_a = nb::none(), "token"_a = "",
      "Joins the processes that gave the same rendezvous name, over one of `live_transports`. "
      "Raises TransportError.");
}

void bind_executor(nb::module_& module) {
  nb::class_<Executor>(module, "Executor", "One rank's run of a plan over a transport.")
      .def(nb::init<LiveTransport&, std::shared_ptr<Plan>>(), "transport"_a, "plan"_a,
           nb::keep_alive<1, 2>())
      .def(
          "run",
          [](Executor& executor, const Plan& plan, const ByteArray& input, const ByteArray& output,
             double timeout_s) {
            const collective::Buffers buffers = bindings::checked(plan, input, output);
            nb::gil_scoped_release released;
            executor.start(buffers);
            executor.finish(transport::timeout_from(timeout_s));
          },
          "plan"_a, "input"_a, "output"_a, "timeout_s"_a,
          "Runs one invocation. Arrays are uint8, as long as Plan.input_bytes and\n"
          "Plan.output_bytes say. Raises TransportError when a peer dies or the time is up.")
      .def(
          "measure",
          [](Executor& executor, LiveTransport& transport, const Plan& plan, const ByteArray& input,
             const ByteArray& output, int times, double timeout_s) {
            const collective::Buffers buffers = bindings::checked(plan, input, output);
            collective::Repetition repetition;
            {
              nb::gil_scoped_release released;
              repetition = collective::repeat(executor, transport, buffers, times,
                                              transport::timeout_from(timeout_s));
            }
            nb::list samples;
            for (const Time sample : repetition.samples) samples.append(sample.us());
            return samples;
          },
          "transport"_a, "plan"_a, "input"_a, "output"_a, "times"_a, "timeout_s"_a,
          "As run, `times` times back to back; durations in microseconds, evenly spaced samples\n"
          "where there are more than 65,536.");
}

}  // namespace

void bind_live(nb::module_& module) {
  bind_transport(module);
  bind_connect(module);
  bind_executor(module);
}

void bind_group_api(nb::module_& module) {
  module.def(
      "group_api", [] { return nb::capsule(towpath_get_group_api(), TOWPATH_GROUP_API_NAME); },
      "The table of live/group_api.h, for extensions of other programs.");
}
