// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/mailbox_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/sim/process_call.hpp"

namespace towpath::riscv_mailbox {

Context& MailboxSession::open(int node, int domain) {
  const auto is_here = [&](const Process& one) { return one.context->address().node == node; };
  const auto taken = std::ranges::count_if(processes_, is_here);
  if (taken >= interconnect_.cluster().cores_per_node) {
    throw std::invalid_argument(fmt::format("all {} cores of node {} of cluster '{}' are in use",
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

void MailboxSession::call(const char* what, const char* obstacle, std::function<void()> body) {
  if (run_process(simulation_, what, std::move(body))) return;
  throw DeadlockError(fmt::format("{} cannot end: no event is left, and {}", what, obstacle));
}

namespace {
constexpr const char* kFull = "the mailbox of its target is full";
constexpr const char* kEmpty = "its mailbox is empty";
}  // namespace

void MailboxSession::send(Context& context, Address to, std::span<const std::byte> payload) {
  call("send", kFull, [&context, to, bytes = std::vector(payload.begin(), payload.end())] {
    context.send(to, bytes);
  });
}

void MailboxSession::flush(Context& context) {
  call("flush", kFull, [&context] { context.flush(); });
}

std::optional<Message> MailboxSession::try_receive(Context& context) {
  auto message = std::make_shared<std::optional<Message>>();
  call("try_receive", kEmpty, [&context, message] { *message = context.try_receive(); });
  return std::move(*message);
}

std::optional<Message> MailboxSession::receive(Context& context, Time timeout) {
  auto message = std::make_shared<std::optional<Message>>();
  const Time deadline = simulation_.from_now(timeout);
  call("receive", kEmpty, [&context, message, deadline] { *message = context.receive(deadline); });
  return std::move(*message);
}

}  // namespace towpath::riscv_mailbox
