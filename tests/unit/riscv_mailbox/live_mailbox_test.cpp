// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "processes.hpp"
#include "towpath/riscv_mailbox/live/mailbox.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::riscv_mailbox::live {
namespace {
using namespace literals;
using conformance::Processes;

std::string unique_name(const char* what) {
  static int number = 0;
  return fmt::format("{}-{}-{}", what, ::getpid(), ++number);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.size_bytes};
}

TEST(LiveMailbox, CarriesMessagesOfAllSizesInOrder) {
  const Mailbox mailbox(unique_name("sizes"));
  Sender sender(Mailbox::find(mailbox.name()));
  Receiver receiver(mailbox);
  Message message;
  for (std::size_t size = 0; size <= kPayloadBytesMax; ++size) {
    const std::string text(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(sender.try_send(bytes_of(text)));
    ASSERT_TRUE(receiver.try_receive(message));
    EXPECT_EQ(text_of(message), text);
    EXPECT_EQ(message.number, size + 1);
  }
  EXPECT_FALSE(receiver.try_receive(message));
}

TEST(LiveMailbox, IsBoundedAndGoesOnWhenThereIsRoom) {
  const Mailbox mailbox(unique_name("bounded"), {.depth_messages = 8});
  Sender sender(mailbox);
  Receiver receiver(mailbox);
  Message message;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(sender.try_send(bytes_of(std::to_string(i))));
  EXPECT_FALSE(sender.try_send(bytes_of("8")));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(receiver.try_receive(message));
    EXPECT_EQ(text_of(message), std::to_string(i));
  }
  EXPECT_FALSE(receiver.try_receive(message));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(sender.try_send(bytes_of("again")));
}

// Random interleavings of both sides behave like a queue.
TEST(LiveMailbox, ActsLikeAQueueOfItsDepth) {
  for (std::uint32_t depth = 1; depth <= 64; depth *= 4) {
    const Mailbox mailbox(unique_name("queue"), {.depth_messages = depth});
    Sender sender(mailbox);
    Receiver receiver(mailbox);
    std::deque<std::string> queue;
    std::mt19937 random(depth);
    Message message;
    for (int i = 0; i < 20'000; ++i) {
      if (random() % 2 == 0) {
        const std::string text = std::to_string(random());
        const bool is_sent = sender.try_send(bytes_of(text));
        if (is_sent) queue.push_back(text);
        // Room is given back in quarters, and the last message received is not released yet.
        EXPECT_TRUE(is_sent || queue.size() + std::max(depth / 4, 1u) >= depth);
        ASSERT_LE(queue.size(), depth);
      } else if (receiver.try_receive(message)) {
        ASSERT_FALSE(queue.empty());
        EXPECT_EQ(text_of(message), queue.front());
        queue.pop_front();
      } else {
        EXPECT_TRUE(queue.empty());
      }
    }
  }
}

TEST(LiveMailbox, SendersHaveLanesOfTheirOwnAndGiveThemBack) {
  const Mailbox mailbox(unique_name("lanes"), {.depth_messages = 4, .senders_max = 3});
  Receiver receiver(mailbox);
  {
    Sender a(mailbox), b(mailbox), c(mailbox);
    EXPECT_EQ(c.lane(), 2u);
    EXPECT_EQ(error_of([&] { Sender(mailbox).lane(); }),
              fmt::format("mailbox \"{}\" already has 3 senders, its maximum", mailbox.name()));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(a.try_send(bytes_of("a")));
    EXPECT_FALSE(a.try_send(bytes_of("a")));
    EXPECT_TRUE(b.try_send(bytes_of("b")));  // no sender is held back by another
    EXPECT_TRUE(c.try_send(bytes_of("c")));
  }
  Sender next(mailbox);
  EXPECT_EQ(next.lane(), 0u);
  EXPECT_EQ(next.sent(), 4u);  // it goes on behind what is still there
  EXPECT_FALSE(next.try_send(bytes_of("d")));
  std::string received;
  Message message;
  while (receiver.try_receive(message)) received += text_of(message);
  EXPECT_EQ(received, "aaaabc");
  EXPECT_TRUE(next.try_send(bytes_of("d")));
  ASSERT_TRUE(receiver.try_receive(message));
  EXPECT_EQ(message.number, 5u);
}

TEST(LiveMailbox, ASuccessorReceivesTheUnreleasedMessageOnceMore) {
  const Mailbox mailbox(unique_name("successor"));
  Sender sender(mailbox);
  for (const char* text : {"one", "two", "three"}) EXPECT_TRUE(sender.try_send(bytes_of(text)));
  Processes processes(1, [&](int) {
    Receiver receiver(Mailbox::find(mailbox.name()));
    Message message;
    receiver.receive(message);
    receiver.receive(message);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(processes.wait(std::chrono::seconds(30))[0], "killed by signal 9");
  Receiver receiver(mailbox);
  Message message;
  ASSERT_TRUE(receiver.try_receive(message));
  EXPECT_EQ(text_of(message), "two");
  EXPECT_EQ(message.number, 2u);
  ASSERT_TRUE(receiver.try_receive(message));
  EXPECT_EQ(text_of(message), "three");
}

TEST(LiveMailbox, ASuccessorGivesBackTheRoomOfWhatWasReceived) {
  const Mailbox mailbox(unique_name("room"), {.depth_messages = 8});
  Sender sender(mailbox);
  while (sender.try_send(bytes_of("x"))) continue;
  Message message;
  {
    Receiver receiver(mailbox);
    ASSERT_TRUE(receiver.try_receive(message));
  }
  EXPECT_FALSE(sender.try_send(bytes_of("x")));  // room is given back in quarters
  Receiver successor(mailbox);
  EXPECT_TRUE(sender.try_send(bytes_of("x")));
  EXPECT_FALSE(sender.try_send(bytes_of("x")));
}

TEST(LiveMailbox, ABusySenderDoesNotKeepOthersWaiting) {
  const Mailbox mailbox(unique_name("fair"));
  Receiver receiver(mailbox);
  Sender busy(mailbox), quiet(mailbox);
  EXPECT_TRUE(quiet.try_send(bytes_of("once")));
  Message message;
  int before = 0;
  for (bool is_received = false; !is_received; ++before) {
    ASSERT_LE(before, 32);
    while (busy.try_send(bytes_of("x"))) continue;
    ASSERT_TRUE(receiver.try_receive(message));
    is_received = message.lane == quiet.lane();
  }
  // The busy one gets its turn again, too.
  ASSERT_TRUE(receiver.try_receive(message));
  EXPECT_EQ(message.lane, busy.lane());
}

TEST(LiveMailbox, ThereIsOneReceiverAtATime) {
  const Mailbox mailbox(unique_name("one"));
  const std::string refusal = fmt::format("mailbox \"{}\" already has a receiver", mailbox.name());
  {
    Receiver receiver(mailbox);
    EXPECT_EQ(error_of([&] { Receiver second(mailbox); }), refusal);
  }
  Receiver again(mailbox);
}

TEST(LiveMailbox, AFullMailboxWithoutReceiverEndsASendWithASentence) {
  const Mailbox mailbox(unique_name("alone"), {.depth_messages = 1});
  Sender sender(mailbox);
  sender.send(bytes_of("in"));
  try {
    sender.send(bytes_of("out"));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const transport::TransportError& error) {
    EXPECT_EQ(error.kind(), transport::TransportError::Kind::peer_died);
    EXPECT_EQ(error.what(),
              fmt::format("mailbox \"{}\" is full, and its receiver is gone", mailbox.name()));
  }
  Receiver receiver(mailbox);
  EXPECT_EQ(error_of([&] { sender.send(bytes_of("out"), 5_ms); }),
            fmt::format("mailbox \"{}\" was full for 0.005 s; its receiver is alive, but slow or "
                        "stopped",
                        mailbox.name()));
}

TEST(LiveMailbox, NamesAreFoundWhileTheirMakerLives) {
  const std::string name = unique_name("named");
  const std::string nobody = fmt::format("there is no mailbox \"{}\" on this host", name);
  EXPECT_EQ(error_of([&] { Mailbox::find(name); }), nobody);
  {
    const Mailbox mailbox(name);
    EXPECT_EQ(error_of([&] { Mailbox second(name); }),
              fmt::format("mailbox \"{}\" exists already; choose another name", name));
    Mailbox::find(name);
  }
  EXPECT_EQ(error_of([&] { Mailbox::find(name); }), nobody);
}

TEST(LiveMailbox, ANewMailboxIsNotTakenForAnOlderOneOfTheName) {
  const std::string name = unique_name("twice");
  auto old = std::make_unique<Mailbox>(name);
  Sender still_there(*old);
  old.reset();
  const Mailbox young(name);
  Sender sender(Mailbox::find(name));
  EXPECT_TRUE(sender.try_send(bytes_of("here")));
  Receiver receiver(young);
  Message message;
  EXPECT_TRUE(receiver.try_receive(message));
}

// Files are numbered in batches per core, so that a younger one may have the lower number.
TEST(LiveMailbox, ANewMailboxOfAnotherCoreIsNotTakenForAnOlderOne) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  if (cores.size() < 2) GTEST_SKIP() << "there is one core only";
  const auto pin = [](int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  };
  for (int i = 0; i < 20; ++i) {
    const std::string name = unique_name("cores");
    pin(cores[i % 2]);
    auto old = std::make_unique<Mailbox>(name);
    const Sender still_there(*old);
    old.reset();
    pin(cores[1 - i % 2]);
    const Mailbox young(name);
    Receiver receiver(young);
    EXPECT_TRUE(Sender(Mailbox::find(name)).try_send(bytes_of("here")));
    Message message;
    EXPECT_TRUE(receiver.try_receive(message)) << "from core " << cores[i % 2];
  }
  EXPECT_EQ(::sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

// A receiver that only looks, or always finds a message, serves look-ups, too.
TEST(LiveMailbox, IsFoundAsOftenAsIsAskedForWhileItsReceiverLooks) {
  const Mailbox mailbox(unique_name("often"));
  Receiver receiver(mailbox);
  Sender sender(mailbox);
  Message message;
  const auto look = [&](bool is_busy) {
    for (int i = 0; i < 100'000; ++i) {
      ASSERT_TRUE(!is_busy || sender.try_send(bytes_of("x")));
      ASSERT_EQ(receiver.try_receive(message), is_busy);
    }
  };
  for (int i = 0; i < SOMAXCONN; ++i) ASSERT_EQ(Mailbox::find(mailbox.name()).name()[0], 'o');
  look(false);
  for (int i = 0; i < SOMAXCONN; ++i) ASSERT_EQ(Mailbox::find(mailbox.name()).name()[0], 'o');
  look(true);
  ASSERT_EQ(error_of([&] { Mailbox::find(mailbox.name()); }), "nothing was thrown");
}

TEST(LiveMailbox, SaysWhyItIsNotFoundWhenItsMakerServesNoLookups) {
  const Mailbox mailbox(unique_name("alone"));
  const std::string sentence = error_of([&] {
    for (int i = 0; i < SOMAXCONN + 2; ++i) Mailbox::find(mailbox.name());
  });
  EXPECT_EQ(sentence, fmt::format("mailbox \"{}\" has had too many look-ups while its maker did "
                                  "not receive; it must receive or call serve_lookups",
                                  mailbox.name()));
  mailbox.serve_lookups();
  EXPECT_EQ(error_of([&] { Mailbox::find(mailbox.name()); }), "nothing was thrown");
}

TEST(LiveMailbox, TheFirstMessageOfAnyNewSenderIsSeenAtOnce) {
  const Mailbox mailbox(unique_name("late"));
  Receiver receiver(mailbox);
  Sender silent(mailbox), other(mailbox);
  EXPECT_TRUE(other.try_send(bytes_of("here")));
  Message message;
  ASSERT_TRUE(receiver.try_receive(message));
  EXPECT_EQ(message.lane, other.lane());
}

TEST(LiveMailbox, RefusesWhatIsNoMailboxAndNoMessage) {
  EXPECT_EQ(error_of([] { Mailbox(""); }),
            "the name of a mailbox has 0 bytes; it must have 1 to 64, none of them zero");
  EXPECT_EQ(error_of([] { Mailbox("x", {.depth_messages = 3}); }),
            "mailbox \"x\" has a depth of 3; it must be a power of two up to 65536");
  EXPECT_EQ(error_of([] { Mailbox("x", {.senders_max = 0}); }),
            "mailbox \"x\" has a limit of 0 senders; it must be 1 to 1024");
  const Mailbox mailbox(unique_name("large"));
  Sender sender(mailbox);
  EXPECT_EQ(error_of([&] { sender.send(bytes_of(std::string(57, 'x'))); }),
            "a message has 57 bytes; it must have at most 56");
}

TEST(LiveMailbox, ContextsAnswerEachOtherByName) {
  const std::string one = unique_name("context"), other = unique_name("context");
  Context here(one);
  Processes processes(1, [&](int) {
    Context there(other);
    there.send(one, bytes_of("ready"));
    Message message;
    while (there.receive(message) && text_of(message) != "stop") there.send(one, message.payload());
  });
  Message message;
  ASSERT_TRUE(here.receive(message));
  EXPECT_EQ(text_of(message), "ready");
  for (int i = 0; i < 1000; ++i) {
    here.send(other, bytes_of(std::to_string(i)));
    ASSERT_TRUE(here.receive(message));
    EXPECT_EQ(text_of(message), std::to_string(i));
  }
  here.send(other, bytes_of("stop"));
  EXPECT_EQ(processes.wait(std::chrono::seconds(30))[0], "");
}

// A sender learns of the end of a mailbox when its lane is full, and looks the name up again.
TEST(LiveMailbox, AContextReachesAPeerThatCameBack) {
  // How long it waits for a full mailbox before it looks again; not at all: it tries.
  for (const Time patience : {Time::from_seconds(60), 10_ms, Time()}) {
    Context here(unique_name("here"));
    const std::string name = unique_name("back");
    auto there = std::make_unique<Context>(name, MailboxOptions{.depth_messages = 2});
    here.send(name, bytes_of("to the first"));
    there.reset();
    there = std::make_unique<Context>(name, MailboxOptions{.depth_messages = 2});
    EXPECT_TRUE(here.try_send(name, bytes_of("lost")));
    if (patience == Time()) {
      EXPECT_FALSE(here.try_send(name, bytes_of("full")));
      EXPECT_TRUE(here.try_send(name, bytes_of("to the second")));
    } else {
      EXPECT_THROW(here.send(name, bytes_of("full"), patience), transport::TransportError);
      here.send(name, bytes_of("to the second"), 1_ms);
    }
    Message message;
    ASSERT_TRUE(there->try_receive(message));
    EXPECT_EQ(text_of(message), "to the second");
  }
}

}  // namespace
}  // namespace towpath::riscv_mailbox::live
