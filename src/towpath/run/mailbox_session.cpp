// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/run/mailbox_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace towpath::run {

using device::mailbox::Address;
using device::mailbox::Context;
using device::mailbox::Core;
using device::mailbox::Message;

MailboxSession::MailboxSession(std::shared_ptr<const machine::MailboxCluster> cluster,
                               std::uint64_t seed)
    : simulation_(seed), interconnect_(simulation_, std::move(cluster)) {}

Context& MailboxSession::open(int node, int domain) {
  const auto is_here = [&](const Process& one) { return one.context->address().node == node; };
  const auto taken = std::ranges::count_if(processes_, is_here);
  if (taken >= interconnect_.cluster().cores_per_node) {
    throw std::invalid_argument(fmt::format("all {} cores of node {} of cluster '{}' are taken",
                                            taken, node, interconnect_.cluster().name));
  }
  auto core = std::make_unique<Core>(simulation_, interconnect_.cluster(),
                                     fmt::format("core {} of node {}", taken, node));
  auto context = std::make_unique<Context>(interconnect_, *core, Context::Options{node, domain});
  processes_.push_back({std::move(core), std::move(context)});
  return *processes_.back().context;
}

void MailboxSession::close(Context& context) {
  std::erase_if(processes_, [&](const Process& one) { return one.context.get() == &context; });
}

// What the body captures belongs to it: it outlives a call that gives up.
void MailboxSession::call(const char* what, std::function<void()> body) {
  auto is_done = std::make_shared<bool>(false);
  simulation_.spawn(what, [is_done, body = std::move(body)] {
    body();
    *is_done = true;
  });
  while (!*is_done && simulation_.step()) continue;
  if (*is_done) return;
  throw std::runtime_error(fmt::format(
      "{} waits for ever: nothing is under way, and the mailbox that it is for is full", what));
}

void MailboxSession::send(Context& context, Address to, std::span<const std::byte> payload) {
  call("send", [&context, to, bytes = std::vector<std::byte>(payload.begin(), payload.end())] {
    context.send(to, bytes);
  });
}

void MailboxSession::flush(Context& context) {
  call("flush", [&context] { context.flush(); });
}

std::optional<Message> MailboxSession::try_receive(Context& context) {
  std::optional<Message> message;
  call("try_receive", [&] { message = context.try_receive(); });
  return message;
}

std::optional<Message> MailboxSession::receive(Context& context, Time timeout) {
  std::optional<Message> message;
  call("receive", [&] { message = context.receive(simulation_.from_now(timeout)); });
  return message;
}

}  // namespace towpath::run
