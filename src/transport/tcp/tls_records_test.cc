// Records as they arrive over a socket: in parts, several at once, and invalid.
#include "transport/tcp/tls_records.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace unisono::tcp {
namespace {

class TcpTlsRecords : public ::testing::Test {
 protected:
  TcpTlsRecords() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    here_ = UniqueFd(ends[0]);
    there_ = UniqueFd(ends[1]);
    records_.emplace(here_.get());
  }
  static std::string record(std::size_t body) {
    std::string made = "\x17\x03\x03";
    made += static_cast<char>(body >> 8);
    made += static_cast<char>(body & 0xff);
    return made + std::string(body, 'b');
  }
  void come(const std::string& bytes) {
    EXPECT_EQ(::send(there_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string take(std::size_t bytes) {
    std::string taken(bytes, '\0');
    taken.resize(records_->take(taken.data(), bytes));
    return taken;
  }

  UniqueFd here_;
  UniqueFd there_;
  std::optional<TlsRecords> records_;
};

TEST_F(TcpTlsRecords, GivesARecordOnceAllOfItHasCome) {
  const std::string one = record(300);
  come(one.substr(0, 4));
  EXPECT_EQ(take(1000), "");
  come(one.substr(4, 200));
  EXPECT_EQ(take(1000), "");
  EXPECT_FALSE(records_->has_unread());
  come(one.substr(204));
  EXPECT_EQ(take(5), one.substr(0, 5));
  EXPECT_TRUE(records_->has_unread()) << "the body is still here";
  EXPECT_EQ(take(1000), one.substr(5));
  EXPECT_FALSE(records_->has_unread());
  EXPECT_TRUE(records_->goes_on());
}

TEST_F(TcpTlsRecords, GivesNotMoreThanOneRecordAtOnce) {
  come(record(10) + record(20) + record(30).substr(0, 12));
  EXPECT_EQ(take(1000), record(10));
  EXPECT_TRUE(records_->has_unread());
  EXPECT_EQ(take(1000), record(20));
  EXPECT_FALSE(records_->has_unread()) << "of the third a part has come";
}

TEST_F(TcpTlsRecords, GivesWhatIsNoRecordAsItIs) {
  come("\x17\x03\x03\xff\xff rubbish");
  EXPECT_EQ(take(1000).size(), 13U);
}

TEST_F(TcpTlsRecords, KnowsTheEnd) {
  come(record(3).substr(0, 6));
  there_.reset();
  EXPECT_EQ(take(1000), "");
  EXPECT_TRUE(records_->ended());
  EXPECT_FALSE(records_->goes_on());
}

TEST_F(TcpTlsRecords, HoldsWhatTheKernelDoesNotTake) {
  const std::string part(TlsRecords::kPlain, 'p');
  std::size_t put = 0;
  while (records_->push() && put < (std::size_t{64} << 20)) {
    ASSERT_TRUE(records_->put(part.data(), part.size()));
    put += part.size();
  }
  EXPECT_TRUE(records_->has_unsent());
  EXPECT_EQ(records_->error(), 0);
  while (records_->put(part.data(), part.size())) {
    put += part.size();
  }
  EXPECT_TRUE(records_->is_full());
  std::string got(put, '\0');
  std::size_t come = 0;
  while (come < put) {
    const ssize_t more = ::recv(there_.get(), got.data() + come, put - come, MSG_DONTWAIT);
    come += more > 0 ? static_cast<std::size_t>(more) : 0;
    records_->push();
  }
  EXPECT_EQ(got, std::string(put, 'p'));
  EXPECT_FALSE(records_->has_unsent());
}

TEST_F(TcpTlsRecords, TellsThatNobodyTakesAnythingAnyMore) {
  there_.reset();
  ASSERT_TRUE(records_->put("x", 1));
  EXPECT_FALSE(records_->push());
  EXPECT_EQ(records_->error(), EPIPE);
}

}  // namespace
}  // namespace unisono::tcp
