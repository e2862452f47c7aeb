// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "towpath/machine/chip.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/machine/host.hpp"
#include "towpath/machine/machine.hpp"
#include "towpath/machine/mailbox_cluster.hpp"

// Described machines from JSON, as written by `towpath export machine NAME --json`. Every value is
// checked against the table of its block. There are no defaults: a missing value is an error.
//
//   const auto machine = towpath::machine::load_machine("dgx-h100");
//
// A name refers to NAME.json in the folders of the environment variable TOWPATH_MACHINES (separated
// by colons), then to the machines in the library (shipped_machines.hpp). A name with a slash or
// the suffix .json is a file path. All functions throw std::invalid_argument with one sentence. For
// a disallowed value it is a DescriptionError (checks.hpp), which names the field.

namespace towpath::machine {

// The form of a description: "chip", "chip_cluster", "host", "mailbox_cluster" or "machine".
std::string form_of(const std::string& name_or_file);

std::shared_ptr<const Chip> load_chip(const std::string& name_or_file);
std::shared_ptr<const ChipCluster> load_chip_cluster(const std::string& name_or_file);
std::shared_ptr<const Host> load_host(const std::string& name_or_file);
std::shared_ptr<const MailboxCluster> load_mailbox_cluster(const std::string& name_or_file);
std::shared_ptr<const Machine> load_machine(const std::string& name_or_file);

// The same from a text. `origin`, such as its file name, is the prefix of error messages.
std::shared_ptr<const Chip> parse_chip(std::string_view json, const std::string& origin);
std::shared_ptr<const ChipCluster> parse_chip_cluster(std::string_view json,
                                                      const std::string& origin);
std::shared_ptr<const Host> parse_host(std::string_view json, const std::string& origin);
std::shared_ptr<const MailboxCluster> parse_mailbox_cluster(std::string_view json,
                                                            const std::string& origin);
std::shared_ptr<const Machine> parse_machine(std::string_view json, const std::string& origin);

// A machine built from single devices and wires: the text form of thousands of hosts would take
// more memory than the machine itself. All calls throw as parse_machine does.
//
//   MachineParts parts(json_without_devices_and_wires, "machine 'm'");
//   const int gpu = parts.add_device("host0/gpu0", "gpu", 0, false);
//   ...
//   parts.add_wire(gpu, hub, "nvlink", 1);
//   const auto machine = std::move(parts).build();
class MachineParts {
 public:
  // `json` as in parse_machine. It may have devices and wires.
  MachineParts(std::string_view json, const std::string& origin);
  ~MachineParts();
  MachineParts(const MachineParts&) = delete;
  MachineParts& operator=(const MachineParts&) = delete;

  // Returns the device's number. `host` is -1 for the network between hosts.
  int add_device(std::string name, std::string_view kind, int host, bool forwards);
  // A link in each direction, as fast as `parallel` links of the type.
  void add_wire(int a, int b, const std::string& link_type, double parallel);
  // Invalidates the parts.
  std::shared_ptr<const Machine> build() &&;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace towpath::machine
