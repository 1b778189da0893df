// Two ranks whose system accepts an arbitrary part of each call's data: nothing, one byte, or
// everything, and sometimes half of a header. This is a program of its own, because it replaces
// system calls.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/sim/random.h"
#include "transport/tcp/connections.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace {

unisono::sim::Random* cuts = nullptr;  // nullptr: everything is sent
int shortened = 0;
int refused = 0;

// Returns how many of the bytes the replaced system call accepts.
std::size_t part_of(std::size_t bytes) {
  if (cuts == nullptr || bytes == 0 || cuts->one_in(4)) {
    return bytes;
  }
  if (cuts->one_in(4)) {
    ++refused;
    return 0;
  }
  const std::size_t part =
      1 + cuts->below(cuts->one_in(2) ? bytes : std::min<std::size_t>(bytes, 60));
  shortened += part < bytes ? 1 : 0;
  return part;
}

ssize_t refuse() {
  errno = EAGAIN;
  return -1;
}

}  // namespace

extern "C" ssize_t send(int fd, const void* data, std::size_t bytes, int flags) {
  const std::size_t part = part_of(bytes);
  return part == 0 && bytes != 0 ? refuse()
                                 : ::syscall(SYS_sendto, fd, data, part, flags, nullptr, 0);
}

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  std::vector<iovec> parts(message->msg_iov, message->msg_iov + message->msg_iovlen);
  std::size_t bytes = 0;
  for (const iovec& one : parts) {
    bytes += one.iov_len;
  }
  std::size_t left = part_of(bytes);
  if (left == 0 && bytes != 0) {
    return refuse();
  }
  for (iovec& one : parts) {
    one.iov_len = std::min(one.iov_len, left);
    left -= one.iov_len;
  }
  msghdr cut = *message;
  cut.msg_iov = parts.data();
  return ::syscall(SYS_sendmsg, fd, &cut, flags);
}

namespace unisono::tcp {
namespace {

// One end of a group: sends data that follows from the message number, and expects the same.
class Talker {
 public:
  Talker(Connections& connections, std::uint64_t group, const std::vector<std::byte>& data)
      : transport_(connections, transport::LaneKey{.group = group}, {0, 1}, connections.rank()),
        data_(data),
        other_(1 - connections.rank()) {}

  void send() {
    const std::size_t bytes = size_of_message(sent_);
    const std::byte* const from = data_.data() + sent_ % 100;
    const bool taken = bytes <= transport_.limits().inline_bytes
                           ? transport_.send(other_, from, bytes, sent_)
                           : transport_.share(other_, from, bytes, sent_);
    sent_ += taken ? 1 : 0;
  }
  // Returns false if the data is not what was sent.
  bool receive() {
    transport::Incoming message;
    if (!transport_.peek(other_, message)) {
      return true;
    }
    const bool right =
        message.signature == received_ && message.bytes == size_of_message(received_) &&
        std::memcmp(message.data, data_.data() + received_ % 100, message.bytes) == 0;
    transport_.release(other_);
    ++received_;
    return right;
  }
  bool flush() { return transport_.flush(transport::kEveryLane); }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }

 private:
  static std::size_t size_of_message(std::uint64_t number) {
    constexpr std::array<std::size_t, 7> kSizes = {8, 1, 200, 20'000, 0, 16'384, 70'000};
    return kSizes[number * 2654435761U % 7];
  }
  TcpTransport transport_;
  const std::vector<std::byte>& data_;
  int other_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

TEST(CutWrites, EveryMessageComesWholeAndInOrder) {
  std::vector<std::byte> data(100'000);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(i * 31 + i / 256);
  }
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Random random(seed);
    Mesh mesh = socket_mesh(2, 1 + static_cast<int>(seed % 2));
    Connections a(0, std::move(mesh[0]), {.slots = 4});
    Connections b(1, std::move(mesh[1]), {.slots = 4});
    std::vector<std::unique_ptr<Talker>> talkers;  // both ends of each group
    for (const std::uint64_t group : {1U, 2U}) {
      talkers.push_back(std::make_unique<Talker>(a, group, data));
      talkers.push_back(std::make_unique<Talker>(b, group, data));
    }
    cuts = &random;
    constexpr int kActions = 4000;
    // The two ends take turns in sending, because a rank that only receives sends nothing but
    // releases.
    std::uint64_t speaker = 0;
    for (int i = 0; i < kActions; ++i) {
      speaker = random.one_in(50) ? random.below(talkers.size()) : speaker;
      if (random.one_in(2)) {
        talkers[speaker]->send();
      }
      ASSERT_TRUE(talkers[random.below(talkers.size())]->receive());
      a.progress();
      b.progress();
      ASSERT_EQ(describe(a.failure()) + describe(b.failure()), "") << i;
    }
    const auto all_came = [&] {
      return talkers[0]->received() == talkers[1]->sent() &&
             talkers[1]->received() == talkers[0]->sent() &&
             talkers[2]->received() == talkers[3]->sent() &&
             talkers[3]->received() == talkers[2]->sent();
    };
    for (int i = 0; i < 1'000'000 && !all_came(); ++i) {
      for (const auto& talker : talkers) {
        static_cast<void>(talker->flush());
        ASSERT_TRUE(talker->receive());
      }
    }
    EXPECT_TRUE(all_came());
    for (const auto& talker : talkers) {
      EXPECT_GT(talker->sent(), 20U) << "its window was not opened again";
    }
    cuts = nullptr;
  }
  // Checks that the link uses the calls that this test replaces.
  EXPECT_GT(shortened, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace unisono::tcp
