// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/machine.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::machine {
namespace {

void bind_parts(nb::module_& module) {
  nb::enum_<DeviceKind>(module, "DeviceKind")
      .value("gpu", DeviceKind::gpu)
      .value("nvswitch", DeviceKind::nvswitch)
      .value("nic", DeviceKind::nic)
      .value("network_switch", DeviceKind::network_switch)
      .value("pcie_bridge", DeviceKind::pcie_bridge)
      .value("cpu", DeviceKind::cpu);
  nb::enum_<LinkKind> link_kinds(module, "LinkKind");
  for (const auto& [name, kind] : machine::kLinkKinds) link_kinds.value(name, kind);
  nb::class_<Device>(module, "Device")
      .def_ro("name", &Device::name)
      .def_ro("kind", &Device::kind)
      .def_ro("host", &Device::host)
      .def_ro("forwards", &Device::forwards);
  nb::class_<Link>(module, "Link")
      .def_prop_ro("from_device", [](const Link& link) { return link.from; })
      .def_prop_ro("to_device", [](const Link& link) { return link.to; })
      .def_ro("kind", &Link::kind)
      .def_prop_ro("rate_gb_per_s", [](const Link& link) { return link.rate.gb_per_s(); })
      .def_prop_ro("latency_ns", [](const Link& link) { return link.latency.ns(); })
      .def_prop_ro("message_overhead_ns",
                   [](const Link& link) { return link.message_overhead.ns(); });
}

void bind_costs(nb::module_& module) {
  nb::class_<ProtocolCost>(module, "ProtocolCost")
      .def_prop_ro("block_rate_gb_per_s",
                   [](const ProtocolCost& cost) { return cost.block_rate.gb_per_s(); })
      .def_prop_ro("send_overhead_ns",
                   [](const ProtocolCost& cost) { return cost.send_overhead.ns(); })
      .def_prop_ro("receive_overhead_ns",
                   [](const ProtocolCost& cost) { return cost.receive_overhead.ns(); })
      .def_ro("fences", &ProtocolCost::fences)
      .def_prop_ro("adapter_rate_gb_per_s",
                   [](const ProtocolCost& cost) { return cost.adapter_rate.gb_per_s(); })
      .def_prop_ro("adapter_overhead_ns",
                   [](const ProtocolCost& cost) { return cost.adapter_overhead.ns(); })
      .def_prop_ro("copy_rate_gb_per_s",
                   [](const ProtocolCost& cost) { return cost.copy_rate.gb_per_s(); })
      .def_prop_ro("forward_rate_gb_per_s",
                   [](const ProtocolCost& cost) { return cost.forward_rate.gb_per_s(); })
      .def_prop_ro("start_overhead_ns",
                   [](const ProtocolCost& cost) { return cost.start_overhead.ns(); });
  const auto of = [](Protocol protocol) {
    return [protocol](const GpuCost& cost) {
      return cost.protocol[static_cast<std::size_t>(protocol)];
    };
  };
  nb::class_<GpuCost>(module, "GpuCost")
      .def_prop_ro("launch_ns", [](const GpuCost& cost) { return cost.launch.ns(); })
      .def_prop_ro("simple", of(Protocol::simple))
      .def_prop_ro("ll", of(Protocol::ll))
      .def_prop_ro("ll128", of(Protocol::ll128));
}

}  // namespace
}  // namespace towpath::machine

void bind_machine(nb::module_& module) {
  using namespace towpath::machine;
  bind_parts(module);
  bind_costs(module);
  nb::class_<Machine>(module, "Machine")
      .def_prop_ro("name", &Machine::name)
      .def_prop_ro("ranks", &Machine::ranks)
      .def_prop_ro("devices", &Machine::devices)
      .def_prop_ro("links", &Machine::links)
      .def(
          "link",
          [](const Machine& machine, std::size_t number) { return machine.links().at(number); },
          "number"_a)
      .def(
          "device",
          [](const Machine& machine, std::size_t number) { return machine.devices().at(number); },
          "number"_a)
      .def_prop_ro("gpu", &Machine::gpu)
      .def("route", &Machine::route, "from_rank"_a, "to_rank"_a,
           "The numbers of the links from one rank to another.");
}
