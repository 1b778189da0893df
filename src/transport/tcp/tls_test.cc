// TLS after the handshake: it renews its keys.
#include "transport/tcp/tls.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "transport/tcp/testing.h"

namespace unisono::tcp {
namespace {

using Bytes = std::vector<unsigned char>;

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_tls().empty()) {
      GTEST_SKIP() << why_no_tls() << ": install libssl3";
    }
  }
  void connect(std::uint64_t records_of_a_key) {
    sockets_ = socket_pair();
    Digest key{};
    fill_random(key);
    a_ = std::make_unique<Tls>(sockets_.a.get(), key, false, nullptr, records_of_a_key);
    b_ = std::make_unique<Tls>(sockets_.b.get(), key, true, nullptr, records_of_a_key);
    shake(*a_, *b_);
  }
  // Sends all data, and takes the other side's data meanwhile.
  static Bytes carry(Tls& from, Tls& to, const Bytes& data) {
    Bytes result(data.size());
    std::size_t sent = 0;
    std::size_t got = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (got < data.size() && std::chrono::steady_clock::now() < end) {
      if (sent < data.size()) {
        const iovec part{const_cast<unsigned char*>(data.data()) + sent, data.size() - sent};
        sent += positive(from.send({&part, 1}));
      }
      from.push();
      const iovec part{result.data() + got, result.size() - got};
      got += positive(to.receive({&part, 1}));
    }
    result.resize(got);
    return result;
  }
  static std::size_t positive(ssize_t bytes) {
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  }
  // Returns the lengths of the data in the records in b's socket.
  std::vector<std::size_t> lengths_before_b() const {
    constexpr std::size_t kAround = 1 + 16;  // the kind, and the authentication tag
    Bytes raw(std::size_t{1} << 16);
    const ssize_t there = ::recv(sockets_.b.get(), raw.data(), raw.size(), MSG_PEEK | MSG_DONTWAIT);
    std::vector<std::size_t> lengths;
    for (std::size_t at = 0; at + 5 <= positive(there);) {
      const std::size_t body = std::size_t{raw[at + 3]} << 8 | raw[at + 4];
      lengths.push_back(body - kAround);
      at += 5 + body;
    }
    return lengths;
  }

  SocketPair sockets_;
  std::unique_ptr<Tls> a_, b_;
};

constexpr std::size_t kKeyUpdate = 5;  // bytes: RFC 8446, section 4.6.3

TEST_F(TlsTest, TellsOfANewKeyAfterSoManyRecords) {
  connect(3);
  Bytes word(100, 7);
  const iovec part{word.data(), word.size()};
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(a_->send({&part, 1}), 100);
  }
  std::vector<std::size_t> seen;
  for (int looks = 0; looks < 5000 && seen.size() < 9; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    seen = lengths_before_b();
  }
  EXPECT_EQ(seen,
            (std::vector<std::size_t>{100, 100, 100, kKeyUpdate, 100, 100, 100, kKeyUpdate, 100}));
  Bytes got(700);
  std::size_t sum = 0;
  for (int looks = 0; looks < 5000 && sum < got.size(); ++looks) {
    const iovec rest{got.data() + sum, got.size() - sum};
    sum += positive(b_->receive({&rest, 1}));
  }
  EXPECT_EQ(got, Bytes(700, 7));
}

// Renews keys in both directions and in the middle of long messages.
TEST_F(TlsTest, CarriesEverythingThroughManyKeys) {
  connect(2);
  for (std::size_t i = 0; i < 200; ++i) {
    Bytes data(i % 10 == 0 ? 300'000 : i);
    for (std::size_t at = 0; at < data.size(); ++at) {
      data[at] = static_cast<unsigned char>(at * 31 + i);
    }
    ASSERT_TRUE(carry(i % 3 == 0 ? *b_ : *a_, i % 3 == 0 ? *a_ : *b_, data) == data) << i;
  }
}

}  // namespace
}  // namespace unisono::tcp
