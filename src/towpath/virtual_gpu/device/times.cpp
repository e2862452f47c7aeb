// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/times.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "towpath/virtual_gpu/device/clock.hpp"
#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

// A simulation of one call takes seconds.
constexpr timeval kAnswerTime{600, 0};

// The connection of this process to the server of times: a line there, a line back.
class Server {
 public:
  Server() : process_(getpid()), socket_(connected()) {}

  bool is_of_this_process() const { return process_ == getpid(); }

  std::string ask(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    const std::string sent = line + "\n";
    if (send(socket_, sent.data(), sent.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(sent.size())) {
      stop("the server of simulated times has ended");
    }
    std::string answer;
    for (char next = 0; next != '\n';) {
      const ssize_t count = read(socket_, &next, 1);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        stop("the server of simulated times has not answered for " +
             std::to_string(kAnswerTime.tv_sec) + " s");
      }
      if (count != 1) stop("the server of simulated times has ended");
      answer += next;
    }
    answer.pop_back();
    if (answer.starts_with("error ")) stop(answer.substr(std::strlen("error ")));
    return answer;
  }

 private:
  static int connected() {
    const char* const name = std::getenv("TOWPATH_TIMES");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = name == nullptr ? 0 : std::strlen(name);
    if (length == 0 || length >= sizeof address.sun_path) {
      stop("$TOWPATH_TIMES must be the name of a socket");
    }
    // No file has this name, so that the socket ends with its server.
    std::memcpy(address.sun_path + 1, name, length);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, reinterpret_cast<sockaddr*>(&address), size) != 0) {
      stop(std::string("cannot connect to the server of simulated times, ") + name);
    }
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
    return made;
  }

  pid_t process_;
  int socket_;
  std::mutex mutex_;
};

// A forked process has a connection of its own.
Server& server() {
  static std::mutex mutex;
  static Server* only = nullptr;
  const std::scoped_lock lock(mutex);
  if (only == nullptr || !only->is_of_this_process()) only = new Server;
  return *only;
}

bool is_message(const Call& call) { return call.kind != CallKind::collective; }

// " BYTES MESSAGES" of all messages of a kernel that share the links of this one.
std::string load_of(const Call& message, const std::vector<Call>& calls) {
  std::uint64_t size_bytes = 0, count = 0;
  for (const Call& each : calls) {
    if (each.kind != message.kind || each.nodes != message.nodes || each.name.empty()) continue;
    size_bytes += each.size_bytes;
    ++count;
  }
  return " " + std::to_string(size_bytes) + " " + std::to_string(count);
}

// The receiver does not change the end of its sender.
std::string id_of_end(const Call& call) {
  return call.kind == CallKind::send ? call.id + ":sent" : call.id;
}

std::int64_t end_of(const Call& call, std::int64_t begin_ns) {
  const std::string answer =
      server().ask("end " + id_of_end(call) + " " + call.name + " " +
                   std::to_string(call.size_bytes) + " " + std::to_string(call.ranks) + " " +
                   std::to_string(call.nodes) + " " + std::to_string(begin_ns));
  return std::atoll(answer.c_str());
}

}  // namespace

void begin_calls(const std::vector<Call>& calls, std::int64_t begin_ns) {
  if (!is_time_simulated()) return;
  for (const Call& call : calls) {
    if (call.name.empty()) continue;
    std::string when = " " + std::to_string(begin_ns);
    if (is_message(call)) when += load_of(call, calls);
    server().ask("begin " + call.id + when);
    if (call.kind == CallKind::send) server().ask("begin " + id_of_end(call) + when);
  }
}

std::int64_t end_calls(const std::vector<Call>& calls, std::int64_t begin_ns) {
  if (!is_time_simulated()) return begin_ns;
  std::int64_t collectives_ns = begin_ns;
  for (const Call& call : calls) {
    if (!call.name.empty() && !is_message(call)) collectives_ns = end_of(call, collectives_ns);
  }
  std::int64_t end_ns = collectives_ns;
  for (const Call& call : calls) {
    if (call.name.empty() || !is_message(call)) continue;
    end_ns = std::max(end_ns, end_of(call, collectives_ns));
  }
  return end_ns;
}

}  // namespace towpath::virtual_gpu
