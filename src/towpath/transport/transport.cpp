// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/transport.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>

namespace towpath::transport {

bool holds(Comparison comparison, std::uint64_t left, std::uint64_t right) {
  switch (comparison) {
    case Comparison::equal: return left == right;
    case Comparison::not_equal: return left != right;
    case Comparison::greater_equal: return left >= right;
  }
  return false;
}

const char* missing_part(const Move& move) {
  if (move.has_signal && move.peer == kNoPeer) return "a peer to raise its signal at";
  if (move.has_addend && !move.has_source) return "a source beside its addend";
  const auto lacks = [&](bool is_named, const std::byte* operand) {
    return is_named && operand == nullptr && move.size_bytes > 0;
  };
  if (lacks(move.has_source, move.source) || lacks(move.has_addend, move.addend) ||
      lacks(move.has_destination, move.destination)) {
    return "a pointer for each operand that its flags name";
  }
  return nullptr;
}

namespace {

std::string_view symbol(Comparison comparison) {
  switch (comparison) {
    case Comparison::equal: return "==";
    case Comparison::not_equal: return "!=";
    case Comparison::greater_equal: return ">=";
  }
  return "?";
}

}  // namespace

void Transport::start_direct(DirectMove&) { throw std::invalid_argument(direct_refusal({})); }

void Transport::raise_all(std::span<const Raise> raises) {
  for (const Raise& raise : raises) {
    Move flag;  // done when start() returns
    flag.peer = raise.rank;
    flag.protocol = Protocol::ll;  // one thread polls it
    flag.has_signal = true;
    flag.signal = raise.signal;
    flag.signal_value = raise.value;
    flag.signal_operation = SignalOperation::add;
    start(flag);
  }
}

std::string Transport::direct_refusal(const DirectNeeds&) const {
  return "one-sided steps need ranks that load from each other's memory: GPUs of a described "
         "machine, or processes of this one";
}

void Transport::complete(Move& move, Time timeout, const char* operation) {
  bool is_done = false;
  move.context = &is_done;
  move.done = [](Move& finished) { *static_cast<bool*>(finished.context) = true; };
  start(move);
  if (is_done) return;
  block_until([&] { return is_done; }, timeout, move.peer,
              [&] {
                return fmt::format("{} of {} bytes to rank {}", operation, move.size_bytes,
                                   move.peer);
              });
}

void Transport::put(int peer, Offset remote, Payload payload, Time timeout) {
  Move move;
  move.source = static_cast<const std::byte*>(payload.data);
  move.has_source = true;
  move.size_bytes = payload.size_bytes;
  move.peer = peer;
  move.remote = remote;
  complete(move, timeout, "put");
}

void Transport::put_signal(int peer, Offset remote, Payload payload, const SignalUpdate& update,
                           Time timeout) {
  Move move;
  move.source = static_cast<const std::byte*>(payload.data);
  move.has_source = payload.size_bytes > 0;
  move.size_bytes = payload.size_bytes;
  move.peer = peer;
  move.remote = remote;
  move.has_signal = true;
  move.signal = update.signal;
  move.signal_value = update.value;
  move.signal_operation = update.operation;
  complete(move, timeout, "put_signal");
}

void Transport::signal_wait_until(Signal signal, Comparison comparison, std::uint64_t value,
                                  Time timeout, int peer) {
  block_until([&] { return transport::holds(comparison, signal_fetch(signal), value); }, timeout,
              peer,
              [&] {
                return fmt::format("signal {} {} {} (it is {})", signal, symbol(comparison), value,
                                   signal_fetch(signal));
              });
}

void Transport::quiet(Time timeout) {
  block_until([&] { return is_quiet(); }, timeout, kNoPeer,
              [] { return std::string("quiet: puts not yet visible at their peers"); });
}

// Dissemination barrier: in round k every rank signals the rank 2^k further. Counters only
// increase, so a rank that is already in the next barrier does not interfere.
void Transport::barrier(Time timeout) {
  quiet(timeout);
  ++barriers_;
  Signal round = 0;
  for (int distance = 1; distance < ranks(); distance *= 2, ++round) {
    const int to = (rank() + distance) % ranks();
    const int from = (rank() - distance % ranks() + ranks()) % ranks();
    put_signal(to, 0, {}, {round, 1, SignalOperation::add}, timeout);
    block_until([&] { return signal_fetch(round) >= barriers_; }, timeout, from,
                [&] { return fmt::format("barrier {}: the arrival of rank {}", barriers_, from); });
  }
}

// A statement consists of the agreement's number, text, and the number again once its rank has read
// all statements. Statements alternate between two slots: a rank can be one agreement ahead of a
// slow reader but not two, because the next one needs the slow reader's statement. Only after a
// timeout may a slot have another number, which is not accepted as an answer.
void Transport::agree(std::string_view statement, Time timeout) {
  const std::uint64_t number = ++agreements_;
  const std::uint64_t parity = number % 2;
  const auto slot = [&](int of_rank) { return statement_of(of_rank, number); };
  std::array<char, kStatementBytes> mine{};
  char* const text = mine.data() + sizeof(number);
  std::memcpy(mine.data(), &number, sizeof(number));
  statement.copy(text, kAllReadAt - sizeof(number) - 1);
  const Signal arrived = static_cast<Signal>(kBarrierSignals + parity);
  for (int peer = 0; peer < ranks(); ++peer) {
    put_signal(peer, slot(rank()), {mine.data(), mine.size()}, {arrived, 1, SignalOperation::add},
               timeout);
  }
  const auto is_there = [&](int peer) {
    return std::memcmp(data(slot(peer)), &number, sizeof(number)) == 0;
  };
  const auto describe = [&] {
    std::vector<int> missing;
    for (int peer = 0; peer < ranks(); ++peer) {
      if (!is_there(peer)) missing.push_back(peer);
    }
    return fmt::format("the statements of rank {}, to compare with its own, \"{}\"",
                       fmt::join(missing, " and rank "), text);
  };
  // One wait per rank: a rank that has left ends the wait for it.
  for (int peer = 0; peer < ranks(); ++peer) {
    block_until([&] { return is_there(peer); }, timeout, peer, describe);
  }
  const std::uint64_t expected = (number + 1) / 2 * static_cast<std::uint64_t>(ranks());
  block_until([&] { return signal_fetch(arrived) >= expected; }, timeout, kNoPeer, describe);
  for (int peer = 0; peer < ranks(); ++peer) {
    const char* theirs = reinterpret_cast<const char*>(data(slot(peer))) + sizeof(number);
    if (std::strcmp(theirs, text) != 0) {
      tell_all_read(number, timeout);
      throw TransportError(TransportError::Kind::disagreement, peer,
                           fmt::format("ranks disagree: rank {} has {}, but rank {} has {}", rank(),
                                       text, peer, theirs));
    }
  }
}

// A rank may end with its error. This must not hide the disagreement from a rank that still waits
// for a third rank's statement.
void Transport::tell_all_read(std::uint64_t number, Time timeout) {
  const auto has_read = [&](int peer) {
    return std::memcmp(data(statement_of(peer, number) + kAllReadAt), &number, sizeof(number)) == 0;
  };
  try {
    fence();  // the statement itself has no fence and comes before
    for (int peer = 0; peer < ranks(); ++peer) {
      put_signal(peer, statement_of(rank(), number) + kAllReadAt, {&number, sizeof(number)},
                 {kAllReadSignal, 1, SignalOperation::add}, timeout);
    }
    for (int peer = 0; peer < ranks(); ++peer) {
      block_until([&] { return has_read(peer); }, timeout, peer,
                  [&] { return fmt::format("rank {} to read what ranks want", peer); });
    }
  } catch (const TransportError&) {
    // A rank has left: this rank reports the disagreement instead.
  }
}

}  // namespace towpath::transport
