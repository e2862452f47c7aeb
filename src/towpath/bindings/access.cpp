// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/bindings/access.hpp"

#include <nanobind/operators.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "towpath/collective/schedule/access.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace towpath::collective;

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
      .def(
          "__init__",
          [](SignalEnd* self, std::int32_t peer, std::int32_t channel) {
            new (self) SignalEnd{peer, channel};
          },
          "peer"_a, "channel"_a)
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
