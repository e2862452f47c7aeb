// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

void bind_chip(nanobind::module_& module);
void bind_chip_cluster(nanobind::module_& module);
void bind_compile_cache(nanobind::module_& module);
void bind_data(nanobind::module_& module);
void bind_live(nanobind::module_& module);
void bind_live_collectives(nanobind::module_& module);
void bind_live_mailbox(nanobind::module_& module);
void bind_errors(nanobind::module_& module);
void bind_ethernet(nanobind::module_& module);
void bind_fabric(nanobind::module_& module);
void bind_gpu(nanobind::module_& module);
void bind_gpu_study(nanobind::module_& module);
void bind_kernels(nanobind::module_& module);
void bind_group_api(nanobind::module_& module);
void bind_load(nanobind::module_& module);
void bind_machine(nanobind::module_& module);
void bind_pcie(nanobind::module_& module);
void bind_mailbox(nanobind::module_& module);
void bind_parameters(nanobind::module_& module);
void bind_routing(nanobind::module_& module);
void bind_run(nanobind::module_& module);
void bind_schedule(nanobind::module_& module);
void bind_traffic(nanobind::module_& module);
void bind_verify(nanobind::module_& module);

NB_MODULE(_core, module) {
  module.doc() = "The C++ core of Towpath. Its names are not public; import towpath instead.";
  bind_errors(module);
  bind_chip(module);
  bind_chip_cluster(module);
  bind_machine(module);
  bind_load(module);
  bind_parameters(module);
  bind_pcie(module);
  bind_schedule(module);
  bind_verify(module);
  bind_compile_cache(module);
  bind_data(module);
  bind_routing(module);
  bind_fabric(module);
  bind_run(module);
  bind_gpu(module);
  bind_gpu_study(module);
  bind_traffic(module);
  bind_mailbox(module);
  bind_live(module);
  bind_live_collectives(module);
  bind_live_mailbox(module);
  bind_group_api(module);
  bind_ethernet(module);
  bind_kernels(module);
  // For a process that exits without a final garbage collection, in which live objects are not a
  // leak.
  module.def("allow_leaks", [] { nanobind::set_leak_warnings(false); });
}
