// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// The programs of rtl/sw between processes of this host, one per node. Times are in nanoseconds.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <thread>

#include "mailbox.h"
#include "programs.hpp"
#include "towpath/riscv_mailbox/live/mailbox.hpp"

namespace live = towpath::riscv_mailbox::live;

struct mailbox_context {
  mailbox_address address;
  std::unique_ptr<live::Context> context;
  std::uint64_t sent = 0;
};

namespace {

constexpr std::size_t kPayloadBytesMax = live::kPayloadBytesMax;
constexpr auto kStartTimeout = std::chrono::seconds(20);

struct Here {
  int group = 0;  // the process that started all
  int node = 0;
  int nodes = 0;
  std::unique_ptr<mailbox_context> context;
};
Here here;  // the C calls have no other way to it

std::string name_of(mailbox_address address) {
  return "rtl-" + std::to_string(here.group) + "/" + std::to_string(address.node) + "." +
         std::to_string(address.context);
}

// A message begins with its sender's node; mailboxes between processes know lanes only.
std::size_t deliver(const live::Message& message, mailbox_address* from, void* payload) {
  std::uint64_t node = 0;
  std::memcpy(&node, message.bytes.data(), sizeof node);
  *from = {static_cast<int>(node), 0};
  const std::size_t size_bytes = message.size_bytes - sizeof node;
  std::memcpy(payload, message.bytes.data() + sizeof node, size_bytes);
  return size_bytes;
}

// Mailboxes are found by name once all processes have made theirs.
void await_peers() {
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  for (int node = 0; node < here.nodes; ++node) {
    for (;;) {
      try {
        live::Mailbox::find(name_of({node, 0}));
        break;
      } catch (const std::runtime_error&) {
        if (std::chrono::steady_clock::now() > deadline) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
}

int run_node(const Request& request, int node) {
  here.node = node;
  here.nodes = request.nodes;
  std::vector<std::uint64_t> results(request.arguments[ARGUMENT_ITERATIONS]);
  const int code = request.program(node, request.nodes, request.arguments.data(), results.data());
  if (node == 0 && code == 0)
    std::printf("{\"last\": %llu}\n", static_cast<unsigned long long>(results.back()));
  std::fflush(stdout);
  // Others may still look for this mailbox: a process ends when its messages have been taken.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return code;
}

}  // namespace

extern "C" {

std::uint64_t program_cycles() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

mailbox_context* mailbox_open(int) {
  if (here.context) return nullptr;
  const mailbox_address address{here.node, 0};
  here.context = std::make_unique<mailbox_context>();
  here.context->address = address;
  here.context->context = std::make_unique<live::Context>(name_of(address));
  await_peers();
  return here.context.get();
}

void mailbox_close(mailbox_context*) { here.context.reset(); }

mailbox_address mailbox_address_of(const mailbox_context* context) { return context->address; }

int mailbox_send(mailbox_context* context, mailbox_address to, const void* payload,
                 std::size_t size_bytes) {
  if (size_bytes == 0 || size_bytes > MAILBOX_PAYLOAD_BYTES_MAX - 8) return -1;
  std::array<std::byte, kPayloadBytesMax> bytes;
  const auto node = static_cast<std::uint64_t>(here.node);
  std::memcpy(bytes.data(), &node, sizeof node);
  std::memcpy(bytes.data() + sizeof node, payload, size_bytes);
  context->context->send(name_of(to), std::span(bytes).first(size_bytes + sizeof node));
  ++context->sent;
  return 0;
}

std::size_t mailbox_try_receive(mailbox_context* context, mailbox_address* from, void* payload) {
  live::Message message;
  return context->context->try_receive(message) ? deliver(message, from, payload) : 0;
}

std::size_t mailbox_receive(mailbox_context* context, mailbox_address* from, void* payload) {
  live::Message message;
  if (!context->context->receive(message)) throw std::runtime_error("no message came in a minute");
  return deliver(message, from, payload);
}

void mailbox_flush(mailbox_context*) {}  // what send returned for will be received

mailbox_notices mailbox_notices_of(mailbox_context* context) {
  return {context->sent, context->sent, 0, 0};
}

}  // extern "C"

int main(int argc, char** argv) {
  try {
    const Request request = parse_request(argc, argv);
    here.group = getpid();
    std::vector<pid_t> processes;
    for (int node = 0; node < request.nodes; ++node) {
      const pid_t process = fork();
      if (process == 0) {
        int code = 3;
        try {
          code = run_node(request, node);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "mailbox_live: node %d: %s\n", node, error.what());
        }
        here.context.reset();
        _exit(code);
      }
      if (process < 0) throw std::runtime_error("cannot start a process");
      processes.push_back(process);
    }
    int failed = 0;
    for (const pid_t process : processes) {
      int status = 0;
      waitpid(process, &status, 0);
      failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mailbox_live: %s\n", error.what());
    return 2;
  }
}
