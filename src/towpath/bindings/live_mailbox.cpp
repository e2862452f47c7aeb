// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <optional>

#include "towpath/riscv_mailbox/live/mailbox.hpp"
#include "towpath/riscv_mailbox/live/measurement.hpp"
#include "towpath/transport/live_transport.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using riscv_mailbox::live::Context;
using riscv_mailbox::live::Measurement;
using riscv_mailbox::live::Message;

std::span<const std::byte> bytes_of(const nb::bytes& payload) {
  return {static_cast<const std::byte*>(payload.data()), payload.size()};
}

std::optional<nb::bytes> shown(bool is_there, const Message& message) {
  if (!is_there) return std::nullopt;
  return nb::bytes(message.bytes.data(), message.size_bytes);
}

// Slices of a wait. The interpreter handles signals between them.
constexpr Time kSlice = Time::from_seconds(0.1);

// A context shared by all threads of a program. They wait without the interpreter's lock. One
// thread sends at a time, and one receives.
struct SharedContext {
  Context context;
  std::mutex sending, receiving;

  SharedContext(const std::string& name, std::uint32_t depth_messages, std::uint32_t senders_max)
      : context(name, {depth_messages, senders_max}) {}

  void send(const std::string& to, const nb::bytes& payload, double timeout_s) {
    const auto bytes = bytes_of(payload);
    nb::gil_scoped_release released;
    const std::lock_guard lock(sending);
    context.send(to, bytes, transport::timeout_from(timeout_s));
  }
  bool try_send(const std::string& to, const nb::bytes& payload) {
    const std::unique_lock lock(sending, std::try_to_lock);
    return lock.owns_lock() && context.try_send(to, bytes_of(payload));
  }
  std::optional<nb::bytes> try_receive() {
    const std::unique_lock lock(receiving, std::try_to_lock);
    Message message;
    return shown(lock.owns_lock() && context.try_receive(message), message);
  }
  std::optional<nb::bytes> receive(double timeout_s) {
    Message message;
    bool is_there = false;
    for (Time left = transport::timeout_from(timeout_s); !is_there; left = left - kSlice) {
      const bool is_last = left <= kSlice;
      {
        nb::gil_scoped_release released;
        const std::lock_guard lock(receiving);
        is_there = context.receive(message, is_last ? left : kSlice);
      }
      if (is_last) break;
      if (!is_there && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    return shown(is_there, message);
  }
};

void bind_context(nb::module_& module) {
  nb::class_<SharedContext>(module, "LiveMailboxContext", "The core of towpath's Mailbox.")
      .def(nb::init<const std::string&, std::uint32_t, std::uint32_t>(), "name"_a,
           "depth_messages"_a, "senders_max"_a)
      .def_prop_ro("address", [](const SharedContext& self) { return self.context.address(); })
      .def("send", &SharedContext::send, "to"_a, "payload"_a, "timeout_s"_a)
      .def("try_send", &SharedContext::try_send, "to"_a, "payload"_a)
      .def("try_receive", &SharedContext::try_receive)
      .def("receive", &SharedContext::receive, "timeout_s"_a);
}

void bind_measurement(nb::module_& module) {
  nb::class_<Measurement>(module, "LiveMailboxMeasurement",
                          "One of two processes that measure; both make the same calls.")
      .def(
          "__init__",
          [](Measurement* place, const std::string& own, const std::string& other,
             bool is_initiator, double timeout_s) {
            nb::gil_scoped_release released;
            new (place) Measurement(own, other, is_initiator, transport::timeout_from(timeout_s));
          },
          "own"_a, "other"_a, "is_initiator"_a, "timeout_s"_a = 30.0)
      .def("line_ping_pong_ns", &Measurement::line_ping_pong_ns, "iterations"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("ping_pong_ns", &Measurement::ping_pong_ns, "iterations"_a, "size_bytes"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("messages_per_s", &Measurement::messages_per_s, "blocks"_a, "block_messages"_a,
           "size_bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("local_ns", &Measurement::local_ns, "blocks"_a, "block_messages"_a, "size_bytes"_a,
           nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void bind_live_mailbox(nb::module_& module) {
  bind_context(module);
  bind_measurement(module);
}
