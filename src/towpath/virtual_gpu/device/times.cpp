// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/device/times.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

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
      if (read(socket_, &next, 1) != 1) stop("the server of simulated times has ended");
      answer += next;
    }
    answer.pop_back();
    if (answer.starts_with("error ")) stop(answer.substr(std::strlen("error ")));
    return answer;
  }

 private:
  static int connected() {
    const char* const path = std::getenv("TOWPATH_TIMES");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) {
      stop("$TOWPATH_TIMES must name a socket with a short path");
    }
    std::strcpy(address.sun_path, path);
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      stop(std::string("cannot connect to the server of simulated times, ") + path);
    }
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

struct Pending {
  std::mutex mutex;
  std::map<std::pair<int, cudaStream_t>, std::vector<Call>> calls;
};

Pending& pending() {
  static Pending* const only = new Pending;
  return *only;
}

}  // namespace

void add_call(int device, cudaStream_t stream, Call call) {
  const std::scoped_lock lock(pending().mutex);
  pending().calls[{device, stream}].push_back(std::move(call));
}

void drop_call(int device, cudaStream_t stream) {
  const std::scoped_lock lock(pending().mutex);
  auto& calls = pending().calls[{device, stream}];
  if (!calls.empty()) calls.pop_back();
}

std::vector<Call> take_calls(int device, cudaStream_t stream) {
  const std::scoped_lock lock(pending().mutex);
  const auto found = pending().calls.find({device, stream});
  if (found == pending().calls.end()) return {};
  std::vector<Call> calls = std::move(found->second);
  pending().calls.erase(found);
  return calls;
}

void begin_calls(const std::vector<Call>& calls, std::int64_t begin_ns) {
  for (const Call& call : calls) server().ask("begin " + call.id + " " + std::to_string(begin_ns));
}

std::int64_t end_calls(const std::vector<Call>& calls, std::int64_t begin_ns) {
  std::int64_t end_ns = begin_ns;
  for (const Call& call : calls) {
    end_ns = std::atoll(
        server().ask("end " + call.id + " " + call.text + " " + std::to_string(end_ns)).c_str());
  }
  return end_ns;
}

}  // namespace towpath::virtual_gpu
