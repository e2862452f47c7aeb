// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/machine.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;

namespace towpath::machine {
namespace {

// Wide enough for every machine, small enough that a sum of a million of them fits in a Time.
constexpr double kTimeMaxNs = 1e9;
constexpr double kRateMaxGbPerS = 1e9;

Time time_from_ns(double ns, const char* field) {
  if (!(ns >= 0 && ns <= kTimeMaxNs)) {
    throw std::invalid_argument(fmt::format("{} is {}; it must be 0 to {}", field, ns, kTimeMaxNs));
  }
  return Time::from_ns(ns);
}

Rate rate_from_gb_per_s(double rate, const char* field) {
  if (!(rate > 0 && rate <= kRateMaxGbPerS)) {
    throw std::invalid_argument(
        fmt::format("{} is {}; it must be positive, {} at most", field, rate, kRateMaxGbPerS));
  }
  return Rate::from_gb_per_s(rate);
}

void bind_parts(nb::module_& module) {
  nb::enum_<DeviceKind>(module, "DeviceKind")
      .value("gpu", DeviceKind::gpu)
      .value("nvswitch", DeviceKind::nvswitch)
      .value("nic", DeviceKind::nic)
      .value("network_switch", DeviceKind::network_switch)
      .value("pcie_bridge", DeviceKind::pcie_bridge)
      .value("cpu", DeviceKind::cpu);
  nb::enum_<LinkKind>(module, "LinkKind")
      .value("nvlink", LinkKind::nvlink)
      .value("pcie", LinkKind::pcie)
      .value("network", LinkKind::network)
      .value("socket", LinkKind::socket);
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
      .def(
          "__init__",
          [](ProtocolCost* self, double block_rate_gb_per_s, double send_overhead_ns,
             double receive_overhead_ns, bool fences, double adapter_rate_gb_per_s) {
            new (self) ProtocolCost{
                rate_from_gb_per_s(block_rate_gb_per_s, "block_rate_gb_per_s"),
                time_from_ns(send_overhead_ns, "send_overhead_ns"),
                time_from_ns(receive_overhead_ns, "receive_overhead_ns"), fences,
                adapter_rate_gb_per_s == 0
                    ? Rate()
                    : rate_from_gb_per_s(adapter_rate_gb_per_s, "adapter_rate_gb_per_s")};
          },
          nb::kw_only(), "block_rate_gb_per_s"_a, "send_overhead_ns"_a, "receive_overhead_ns"_a,
          "fences"_a, "adapter_rate_gb_per_s"_a = 0.0)
      .def_prop_ro("block_rate_gb_per_s",
                   [](const ProtocolCost& cost) { return cost.block_rate.gb_per_s(); })
      .def_prop_ro("send_overhead_ns",
                   [](const ProtocolCost& cost) { return cost.send_overhead.ns(); })
      .def_prop_ro("receive_overhead_ns",
                   [](const ProtocolCost& cost) { return cost.receive_overhead.ns(); })
      .def_ro("fences", &ProtocolCost::fences)
      .def_prop_ro("adapter_rate_gb_per_s",
                   [](const ProtocolCost& cost) { return cost.adapter_rate.gb_per_s(); });
  const auto of = [](Protocol protocol) {
    return [protocol](const GpuCost& cost) {
      return cost.protocol[static_cast<std::size_t>(protocol)];
    };
  };
  nb::class_<GpuCost>(module, "GpuCost")
      .def(
          "__init__",
          [](GpuCost* self, double launch_ns, const ProtocolCost& simple, const ProtocolCost& ll,
             const ProtocolCost& ll128) {
            new (self) GpuCost{time_from_ns(launch_ns, "launch_ns"), {simple, ll, ll128}};
          },
          nb::kw_only(), "launch_ns"_a, "simple"_a, "ll"_a, "ll128"_a)
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
      .def_prop_ro("gpu", &Machine::gpu)
      .def("route", &Machine::route, "from_rank"_a, "to_rank"_a,
           "The numbers of the links from one rank to another.");
  nb::class_<MachineBuilder>(module, "MachineBuilder")
      .def(nb::init<std::string>(), "name"_a)
      .def(
          "add_device",
          [](MachineBuilder& builder, std::string name, DeviceKind kind, int host, bool forwards) {
            return builder.add_device({std::move(name), kind, host, forwards});
          },
          "name"_a, "kind"_a, nb::kw_only(), "host"_a = 0, "forwards"_a = false)
      .def(
          "add_link",
          [](MachineBuilder& builder, int from_device, int to_device, LinkKind kind,
             double rate_gb_per_s, double latency_ns, double message_overhead_ns) {
            builder.add_link({from_device, to_device, kind,
                              rate_from_gb_per_s(rate_gb_per_s, "rate_gb_per_s"),
                              time_from_ns(latency_ns, "latency_ns"),
                              time_from_ns(message_overhead_ns, "message_overhead_ns")});
          },
          "from_device"_a, "to_device"_a, "kind"_a, nb::kw_only(), "rate_gb_per_s"_a,
          "latency_ns"_a, "message_overhead_ns"_a = 0.0)
      .def("set_gpu_cost", &MachineBuilder::set_gpu_cost, "cost"_a)
      .def(
          "build", [](MachineBuilder& builder) { return std::move(builder).build(); },
          "The machine; the builder is used up.");
}
