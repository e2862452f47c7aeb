// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "towpath/bindings/arrays.hpp"
#include "towpath/machine/mailbox_cluster.hpp"
#include "towpath/riscv_mailbox/mailbox_session.hpp"
#include "towpath/riscv_mailbox/mailbox_stream.hpp"
#include "towpath/riscv_mailbox/ping_pong.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using machine::MailboxCluster;
using riscv_mailbox::Address;
using riscv_mailbox::Context;
using riscv_mailbox::MailboxSession;
using riscv_mailbox::Message;

void bind_ping_pong(nb::module_& module) {
  using riscv_mailbox::PingPongOptions;
  nb::class_<PingPongOptions>(module, "PingPongOptions")
      .def(nb::init<int, int, int, int, int, bool, bool, std::uint64_t>(), nb::kw_only(),
           "size_bytes"_a = 32, "iterations"_a = 1000, "hops"_a = 1, "pairs"_a = 1,
           "phase_cycles"_a = 0, "has_interruptions"_a = true, "has_page_walks"_a = true,
           "seed"_a = 1);
  module.def(
      "run_ping_pong",
      [](std::shared_ptr<MailboxCluster> cluster, PingPongOptions options,
         const nb::object& on_progress) {
        if (!on_progress.is_none()) {
          options.on_progress = [&on_progress](std::size_t iterations) {
            const nb::gil_scoped_acquire acquired;
            on_progress(iterations);
          };
        }
        riscv_mailbox::PingPongResult result;
        {
          nb::gil_scoped_release released;
          result = riscv_mailbox::run_ping_pong(std::move(cluster), options);
        }
        return nb::make_tuple(bindings::column_of(std::move(result.round_trip_cycles)),
                              result.time.us(), result.events);
      },
      "cluster"_a, "options"_a, "on_progress"_a = nb::none(),
      "Sends a message back and forth: (cycles of each round trip, simulated us, events).\n"
      "Calls on_progress from time to time with the number of completed iterations.");
  module.def(
      "ping_pong_breakdown",
      [](std::shared_ptr<MailboxCluster> cluster, const PingPongOptions& options) {
        std::vector<std::tuple<int, std::string, std::int64_t>> events;
        for (const auto& one : riscv_mailbox::ping_pong_breakdown(std::move(cluster), options)) {
          events.emplace_back(one.node, one.event, one.cycle.count());
        }
        return events;
      },
      "cluster"_a, "options"_a,
      "(node, event, cycle) of one iteration that nothing disturbs, up to the next first store.");
}

void bind_stream(nb::module_& module) {
  module.def(
      "run_mailbox_stream",
      [](std::shared_ptr<MailboxCluster> cluster, int senders, int messages, int burst_messages,
         int pause_cycles, int size_bytes, std::uint64_t seed) {
        const auto result = riscv_mailbox::run_mailbox_stream(
            std::move(cluster),
            {senders, messages, burst_messages, pause_cycles, size_bytes, seed});
        return nb::make_tuple(result.received, result.dropped, result.time.us());
      },
      "cluster"_a, nb::kw_only(), "senders"_a = 1, "messages"_a = 1000, "burst_messages"_a = 1000,
      "pause_cycles"_a = 0, "size_bytes"_a = 32, "seed"_a = 1,
      "Many senders, one mailbox: (messages received, dropped, simulated us).");
}

// A handle to a process's context. Empty after close().
class MailboxContext {
 public:
  MailboxContext(MailboxSession& session, Context& context)
      : session_(&session), context_(&context) {}

  std::pair<int, int> address() { return {open().address().node, open().address().context}; }
  void send(std::pair<int, int> to, const nb::bytes& payload) {
    session_->send(open(), {to.first, to.second},
                   {static_cast<const std::byte*>(payload.data()), payload.size()});
  }
  nb::object try_receive() { return shown(session_->try_receive(open())); }
  nb::object receive(double timeout_us) {
    return shown(session_->receive(open(), Time::from_us(timeout_us)));
  }
  void flush() { session_->flush(open()); }
  nb::dict notices() {
    nb::dict counts;
    counts["acknowledged"] = open().notices().acknowledged;
    counts["full"] = open().notices().full;
    counts["refused"] = open().notices().refused;
    return counts;
  }
  void close() {
    if (context_ != nullptr) session_->close(*std::exchange(context_, nullptr));
  }

 private:
  Context& open() {
    if (context_ == nullptr) throw std::invalid_argument("the context is closed");
    return *context_;
  }
  static nb::object shown(const std::optional<Message>& message) {
    if (!message) return nb::none();
    const nb::bytes payload(message->payload.data(), message->payload.size());
    return nb::make_tuple(std::pair(message->from.node, message->from.context), payload);
  }

  MailboxSession* session_;
  Context* context_;
};

void bind_session(nb::module_& module) {
  nb::class_<MailboxContext>(module, "MailboxContext",
                             "A process's share of its node's packetizer, and its mailbox.")
      .def_prop_ro("address", &MailboxContext::address, "(node, context)")
      .def("send", &MailboxContext::send, "to"_a, "payload"_a,
           "Returns when the last store is acknowledged by the core; see `notices`.")
      .def("try_receive", &MailboxContext::try_receive, "(sender, payload), or None.")
      .def("receive", &MailboxContext::receive, "timeout_us"_a = 1e6,
           "(sender, payload), or None after so much simulated time.")
      .def("flush", &MailboxContext::flush, "Waits until something is known about all messages.")
      .def_prop_ro("notices", &MailboxContext::notices, "What has become of the messages sent.")
      .def("close", &MailboxContext::close);
  nb::class_<MailboxSession>(module, "MailboxSession",
                             "A simulated cluster whose processes are driven call by call.")
      .def(nb::init<std::shared_ptr<MailboxCluster>, std::uint64_t>(), "cluster"_a, "seed"_a = 1)
      .def(
          "open",
          [](MailboxSession& session, int node, int domain) {
            return MailboxContext(session, session.open(node, domain));
          },
          "node"_a, "domain"_a = 0, nb::keep_alive<0, 1>(),
          "A process on a core of its own. Messages go between contexts of one domain only.")
      .def_prop_ro("now_us", [](const MailboxSession& session) { return session.now().us(); });
}

}  // namespace

void bind_mailbox(nb::module_& module) {
  nb::class_<MailboxCluster>(module, "MailboxCluster")
      .def_ro("name", &MailboxCluster::name)
      .def_ro("nodes", &MailboxCluster::nodes);
  bind_ping_pong(module);
  bind_stream(module);
  bind_session(module);
}
