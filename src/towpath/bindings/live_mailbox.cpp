// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "towpath/mailbox/live/mailbox.hpp"
#include "towpath/mailbox/live/measurement.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace towpath;
using mailbox::live::Context;
using mailbox::live::Measurement;
using mailbox::live::Message;

std::span<const std::byte> bytes_of(const nb::bytes& payload) {
  return {static_cast<const std::byte*>(payload.data()), payload.size()};
}

nb::object shown(bool is_there, const Message& message) {
  if (!is_there) return nb::none();
  return nb::bytes(message.bytes.data(), message.size_bytes);
}

void bind_context(nb::module_& module) {
  nb::class_<Context>(module, "LiveMailboxContext",
                      "A mailbox of this process, and messages to those of others on this host.")
      .def(
          "__init__",
          [](Context* place, const std::string& name, std::uint32_t depth_messages,
             std::uint32_t senders_max) {
            new (place) Context(name, {depth_messages, senders_max});
          },
          "name"_a, nb::kw_only(), "depth_messages"_a = 256, "senders_max"_a = 64)
      .def_prop_ro("address", &Context::address)
      .def(
          "send",
          [](Context& context, const std::string& to, const nb::bytes& payload, double timeout_s) {
            const auto bytes = bytes_of(payload);
            nb::gil_scoped_release released;
            context.send(to, bytes, Time::from_seconds(timeout_s));
          },
          "to"_a, "payload"_a, "timeout_s"_a = 60.0,
          "Returns when the message will be received, whatever becomes of this process. Raises\n"
          "TransportError while the mailbox stays full or has no receiver.")
      .def(
          "try_send",
          [](Context& context, const std::string& to, const nb::bytes& payload) {
            return context.try_send(to, bytes_of(payload));
          },
          "to"_a, "payload"_a, "False when there is no room.")
      .def("try_receive",
           [](Context& context) {
             Message message;
             return shown(context.try_receive(message), message);
           })
      .def(
          "receive",
          [](Context& context, double timeout_s) {
            Message message;
            bool is_there = false;
            {
              nb::gil_scoped_release released;
              is_there = context.receive(message, Time::from_seconds(timeout_s));
            }
            return shown(is_there, message);
          },
          "timeout_s"_a = 60.0, "The payload, or None when there was none for so long.");
}

void bind_measurement(nb::module_& module) {
  nb::class_<Measurement>(module, "LiveMailboxMeasurement",
                          "One of two processes that measure; both make the same calls.")
      .def(
          "__init__",
          [](Measurement* place, const std::string& own, const std::string& other,
             bool is_initiator, double timeout_s) {
            nb::gil_scoped_release released;
            new (place) Measurement(own, other, is_initiator, Time::from_seconds(timeout_s));
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
