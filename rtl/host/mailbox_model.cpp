// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The programs of rtl/sw on the model of the cluster `carvnet`, in simulated time. What they
// compute themselves costs nothing there; what the library costs is the cluster's.

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>

#include "mailbox.h"
#include "programs.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/riscv_mailbox/context.hpp"

using namespace towpath;

struct mailbox_context {
  mailbox_context(riscv_mailbox::Interconnect& interconnect, mailbox::Core& core,
                  const riscv_mailbox::Context::Options& options)
      : context(interconnect, core, options) {}
  riscv_mailbox::Context context;
};

namespace {

struct Node {
  Node(sim::Simulation& simulation, const machine::MailboxCluster& cluster, int which)
      : number(which), core(simulation, cluster, "node " + std::to_string(which)) {}
  int number;
  mailbox::Core core;
  std::deque<mailbox_context> contexts;
  std::vector<std::uint64_t> results;
  int code = -1;
};

class Cluster {
 public:
  explicit Cluster(const Request& request)
      : description_(describe(request.nodes)), interconnect_(simulation_, description_) {
    for (int number = 0; number < request.nodes; ++number) {
      Node& node = nodes_.emplace_back(simulation_, *description_, number);
      node.results.resize(request.arguments[ARGUMENT_ITERATIONS]);
      simulation_.spawn("node " + std::to_string(number), [this, &node, request] {
        running_[simulation_.current()] = &node;
        node.code = request.program(node.number, request.nodes, request.arguments.data(),
                                    node.results.data());
      });
    }
  }

  void run() {
    while (simulation_.step()) {
    }
  }
  Node& current() { return *running_.at(simulation_.current()); }
  riscv_mailbox::Interconnect& interconnect() { return interconnect_; }
  const std::deque<Node>& nodes() const { return nodes_; }

 private:
  static std::shared_ptr<const machine::MailboxCluster> describe(int nodes) {
    machine::MailboxCluster cluster = *machine::load_mailbox_cluster("carvnet");
    cluster.nodes = nodes;
    cluster.interruptions.clear();
    cluster.page_walks = {};
    return machine::build_mailbox_cluster(std::move(cluster));
  }

  std::shared_ptr<const machine::MailboxCluster> description_;
  sim::Simulation simulation_;
  riscv_mailbox::Interconnect interconnect_;
  std::map<const sim::Process*, Node*> running_;
  std::deque<Node> nodes_;
};

std::unique_ptr<Cluster> cluster;  // the C calls have no other way to it

std::size_t deliver(const std::optional<riscv_mailbox::Message>& message, mailbox_address* from,
                    void* payload) {
  if (!message) return 0;
  *from = {message->from.node, message->from.context};
  std::memcpy(payload, message->payload.data(), message->payload.size());
  return message->payload.size();
}

}  // namespace

extern "C" {

std::uint64_t program_cycles() {
  mailbox::Core& core = cluster->current().core;
  core.spend(1);
  return static_cast<std::uint64_t>(core.now().count());
}

mailbox_context* mailbox_open(int domain) {
  Node& node = cluster->current();
  const riscv_mailbox::Context::Options options{node.number, domain};
  return &node.contexts.emplace_back(cluster->interconnect(), node.core, options);
}

void mailbox_close(mailbox_context*) {}  // with its node

mailbox_address mailbox_address_of(const mailbox_context* context) {
  return {context->context.address().node, context->context.address().context};
}

int mailbox_send(mailbox_context* context, mailbox_address to, const void* payload,
                 std::size_t size_bytes) {
  if (size_bytes == 0 || size_bytes > MAILBOX_PAYLOAD_BYTES_MAX) return -1;
  context->context.send({to.node, to.context},
                        std::span(static_cast<const std::byte*>(payload), size_bytes));
  return 0;
}

std::size_t mailbox_try_receive(mailbox_context* context, mailbox_address* from, void* payload) {
  return deliver(context->context.try_receive(), from, payload);
}

std::size_t mailbox_receive(mailbox_context* context, mailbox_address* from, void* payload) {
  return deliver(context->context.receive(), from, payload);
}

void mailbox_flush(mailbox_context* context) { context->context.flush(); }

mailbox_notices mailbox_notices_of(mailbox_context* context) {
  const riscv_mailbox::Notices& notices = context->context.notices();
  const auto count = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {count(notices.acknowledged + notices.full + notices.refused), count(notices.acknowledged),
          count(notices.full), count(notices.refused)};
}

}  // extern "C"

int main(int argc, char** argv) {
  try {
    cluster = std::make_unique<Cluster>(parse_request(argc, argv));
    cluster->run();
    int failed = 0;
    for (const Node& node : cluster->nodes()) failed += node.code != 0;
    std::printf("{\"codes_other_than_0\": %d, \"last\": %llu}\n", failed,
                static_cast<unsigned long long>(cluster->nodes().front().results.back()));
    cluster.reset();
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mailbox_model: %s\n", error.what());
    return 2;
  }
}
