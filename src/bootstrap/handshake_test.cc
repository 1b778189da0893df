#include "bootstrap/handshake.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace unisono::tcp {
namespace {

using State = Handshake::State;
using Frame = std::array<std::byte, kHandshakeBytes>;

const Identity kZero{.rank = 0, .size = 4, .job = "job", .token = "0123456789abcdef"};
const Identity kThree{.rank = 3, .size = 4, .job = "job", .token = "0123456789abcdef"};

Frame take_frame(Handshake& from) {
  Frame frame{};
  EXPECT_GE(from.output().size(), kHandshakeBytes);
  std::memcpy(frame.data(), from.output().data(), kHandshakeBytes);
  from.sent(kHandshakeBytes);
  return frame;
}

// Runs both sides until neither has anything to send. Returns all frames.
std::vector<Frame> converse(Handshake& dialer, Handshake& listener) {
  std::vector<Frame> said;
  for (;;) {
    if (listener.state() == State::admitting) {
      listener.admit();
    }
    if (!dialer.output().empty()) {
      said.push_back(take_frame(dialer));
      listener.feed(said.back());
    } else if (!listener.output().empty()) {
      said.push_back(take_frame(listener));
      dialer.feed(said.back());
    } else {
      return said;
    }
  }
}

TEST(TcpHandshake, LetsInWhoKnowsTheToken) {
  Identity self = kThree;
  Identity other = kZero;
  self.streams = 2;
  other.streams = 2;
  Handshake dialer = Handshake::dial(self, {.peer = 0, .stream = 1});
  Handshake listener = Handshake::listen(other);
  EXPECT_EQ(converse(dialer, listener).size(), 4U);
  EXPECT_EQ(dialer.state(), State::done);
  EXPECT_EQ(listener.state(), State::done);
  EXPECT_EQ(listener.peer().peer, 3);
  EXPECT_EQ(listener.peer().stream, 1);
}

struct Wrong {
  const char* what;
  Identity dialer;
  int wants;
  HandshakeRefusal refusal;
  const char* listener_says;
};

TEST(TcpHandshake, NamesWhatIsWrong) {
  const auto changed = [](auto change) {
    Identity identity = kThree;
    change(identity);
    return identity;
  };
  const Wrong cases[] = {
      {"token", changed([](Identity& i) { i.token = "another token"; }), 0, HandshakeRefusal::token,
       "rank 3 says: rank 0 has another job token"},
      {"job", changed([](Identity& i) { i.job = "another"; }), 0, HandshakeRefusal::job,
       "rank 3 belongs to another job"},
      {"size", changed([](Identity& i) { i.size = 5; }), 0, HandshakeRefusal::size,
       "rank 3 expects a job of 5 ranks, rank 0 expects 4: all ranks must have the same size"},
      {"rank", changed([](Identity& i) { i.rank = 4; }), 0, HandshakeRefusal::rank,
       "the other side is not a rank of this job"},
      {"same rank", changed([](Identity& i) { i.rank = 0; }), 0, HandshakeRefusal::rank,
       "the other side is not a rank of this job"},
      {"streams", changed([](Identity& i) { i.streams = 2; }), 0, HandshakeRefusal::streams,
       "rank 3 uses another number of streams"},
      {"target", kThree, 1, HandshakeRefusal::target,
       "rank 3 expected another rank at this address"},
  };
  for (const Wrong& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    Handshake dialer = Handshake::dial(wrong.dialer, {.peer = wrong.wants});
    Handshake listener = Handshake::listen(kZero);
    converse(dialer, listener);
    EXPECT_EQ(dialer.state(), State::refused);
    EXPECT_EQ(listener.state(), State::refused);
    EXPECT_EQ(dialer.refusal(), wrong.refusal);
    EXPECT_EQ(listener.refusal(), wrong.refusal);
    EXPECT_EQ(listener.problem(), wrong.listener_says);
    EXPECT_EQ(listener.is_of_job(), wrong.refusal != HandshakeRefusal::job);
  }
}

// An older rank would begin like this: its description is at the same offsets.
TEST(TcpHandshake, NamesTheProtocolOfBothSides) {
  constexpr std::size_t kProtocolAt = 12;
  Handshake dialer = Handshake::dial(kThree, {.peer = 0});
  Handshake listener = Handshake::listen(kZero);
  Frame old = take_frame(dialer);
  const int mine = std::to_integer<int>(old[kProtocolAt]);
  old[kProtocolAt] = std::byte{2};
  listener.feed(old);
  ASSERT_EQ(listener.refusal(), HandshakeRefusal::version);
  const std::string version = reinterpret_cast<const char*>(old.data() + 16);
  const std::string number = std::to_string(mine);
  EXPECT_EQ(listener.problem(), "rank 3 runs unisono " + version + " (protocol 2), rank 0 runs " +
                                    version + " (protocol " + number +
                                    "): all ranks must have the same version");
  dialer.feed(take_frame(listener));
  EXPECT_EQ(dialer.problem(), "rank 0 runs unisono " + version + " (protocol " + number +
                                  "), rank 3 runs " + version + " (protocol " + number +
                                  "): all ranks must have the same version");
}

// Text from a stranger would be printed on rank 0's terminal.
TEST(TcpHandshake, ShowsNothingOfAStrangerThatIsNoText) {
  Handshake dialer = Handshake::dial(kThree, {.peer = 0});
  Handshake listener = Handshake::listen(kZero);
  Frame strange = take_frame(dialer);
  const std::string_view version = "\x1b]0;x\x07\xff.9";
  for (std::size_t i = 0; i < version.size(); ++i) {
    strange[16 + i] = static_cast<std::byte>(version[i]);
  }
  strange[16 + version.size()] = std::byte{0};
  listener.feed(strange);
  ASSERT_EQ(listener.refusal(), HandshakeRefusal::version);
  EXPECT_EQ(listener.problem().find("rank 3 runs unisono ?]0;x??.9 (protocol"), 0U)
      << listener.problem();
}

TEST(TcpHandshake, RefusesADuplicateByName) {
  Handshake dialer = Handshake::dial(kThree, {.peer = 0});
  Handshake listener = Handshake::listen(kZero);
  listener.feed(take_frame(dialer));
  dialer.feed(take_frame(listener));
  listener.feed(take_frame(dialer));
  ASSERT_EQ(listener.state(), State::admitting);
  listener.admit(HandshakeRefusal::duplicate);
  dialer.feed(take_frame(listener));
  EXPECT_EQ(dialer.problem(),
            "rank 0 says: rank 3 is already connected: two processes have this rank");
}

// An attacker cannot use a recorded connection to open another one.
TEST(TcpHandshake, RefusesAReplay) {
  Handshake dialer = Handshake::dial(kThree, {.peer = 0});
  Handshake listener = Handshake::listen(kZero);
  const std::vector<Frame> recorded = converse(dialer, listener);
  Handshake fresh = Handshake::listen(kZero);
  fresh.feed(recorded[0]);
  fresh.feed(recorded[2]);
  EXPECT_EQ(fresh.state(), State::refused);
  EXPECT_EQ(fresh.refusal(), HandshakeRefusal::token);
  // Likewise, a false listener replays its recording.
  Handshake second = Handshake::dial(kThree, {.peer = 0});
  second.feed(recorded[1]);
  EXPECT_EQ(second.refusal(), HandshakeRefusal::token);
  Handshake third = Handshake::dial(kThree, {.peer = 0});
  third.feed(recorded[3]);
  EXPECT_EQ(third.state(), State::refused) << "a welcome without a proof";
}

TEST(TcpHandshake, RefusesItsOwnProof) {
  Handshake dialer = Handshake::dial(kThree, {.peer = 0});
  Handshake listener = Handshake::listen(kZero);
  listener.feed(take_frame(dialer));
  Frame answer = take_frame(listener);
  // Presents the listener's proof as the dialer's; only the step and the ranks are changed.
  Handshake other = Handshake::dial(kThree, {.peer = 0});
  Frame echo = take_frame(other);
  echo[14] = std::byte{3};
  std::memcpy(echo.data() + 96, answer.data() + 96, 32);
  listener.feed(echo);
  EXPECT_EQ(listener.refusal(), HandshakeRefusal::token);
}

TEST(TcpHandshake, LetsNobodyInWithOneBitChanged) {
  for (std::size_t frame = 0; frame < 3; ++frame) {
    for (std::size_t bit = 0; bit < 8 * kHandshakeBytes; ++bit) {
      Handshake dialer = Handshake::dial(kThree, {.peer = 0});
      Handshake listener = Handshake::listen(kZero);
      const bool unused = frame == 0 && bit / 8 >= 96;  // a hello has no proof
      const bool text = bit / 8 == 15 || (frame == 2 && bit / 8 >= 44 && bit / 8 < 48) ||
                        (frame == 2 && bit / 8 >= 64 && bit / 8 < 96);
      Handshake* from = &dialer;
      Handshake* to = &listener;
      for (std::size_t i = 0; i <= frame && !from->output().empty(); ++i) {
        Frame said = take_frame(*from);
        if (i == frame) {
          said[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        }
        to->feed(said);
        std::swap(from, to);
      }
      if (frame == 0 && listener.state() == State::going_on) {
        converse(dialer, listener);
      }
      const State end = frame == 1 ? dialer.state() : listener.state();
      if (!unused && !text && frame != 0) {
        EXPECT_EQ(end, State::refused) << "frame " << frame << ", bit " << bit;
      }
      if (frame == 0 && !unused && !text) {
        EXPECT_NE(listener.state(), State::done) << "frame 0, bit " << bit;
      }
    }
  }
}

TEST(TcpHandshake, SaysNothingToStrangers) {
  Frame http{};
  std::memcpy(http.data(), "GET / HTTP/1.1\r\nHost: example\r\n", 31);
  Handshake listener = Handshake::listen(kZero);
  listener.feed(http);
  EXPECT_EQ(listener.refusal(), HandshakeRefusal::not_ours);
  EXPECT_TRUE(listener.output().empty());
}

TEST(TcpHandshake, LetsInNoRandomFrame) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Handshake listener = Handshake::listen(kZero);
    Handshake dialer = Handshake::dial(kThree, {.peer = 0});
    Frame frame = take_frame(dialer);
    const std::size_t kept = i % 3 == 0 ? 0 : random() % kHandshakeBytes;
    for (std::size_t at = kept; at < frame.size(); ++at) {
      frame[at] = static_cast<std::byte>(random());
    }
    listener.feed(frame);
    listener.feed(frame);
    ASSERT_NE(listener.state(), State::admitting);
    ASSERT_NE(listener.state(), State::done);
  }
}

}  // namespace
}  // namespace unisono::tcp
