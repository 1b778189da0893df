// A stream whose kernel takes all of a frame, a part, or nothing.
#include "transport/tcp/frame_writer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "transport/tcp/testing.h"

namespace unisono::tcp {
namespace {

class TcpFrameWriter : public ::testing::Test {
 protected:
  TcpFrameWriter() {
    SocketPair pair = socket_pair("127.0.0.1", {});
    const int small = 4096;
    ::setsockopt(pair.a.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    other_ = std::move(pair.b);
    stream_.channel = Channel(std::move(pair.a));
  }
  static OutgoingFrame frame(char name, const std::string& payload) {
    OutgoingFrame made;
    made.header.fill(static_cast<std::byte>(name));
    made.data = reinterpret_cast<const std::byte*>(payload.data());
    made.bytes = payload.size();
    return made;
  }
  // Reads so many bytes at the other end, while the writer continues with the rest of its frame.
  std::string read(std::size_t bytes) {
    std::string all(bytes, '\0');
    std::size_t come = 0;
    pollfd entry{other_.get(), POLLIN, 0};
    while (come < bytes && ::poll(&entry, 1, 10'000) == 1) {
      const ssize_t got = ::recv(other_.get(), all.data() + come, bytes - come, MSG_DONTWAIT);
      come += got > 0 ? static_cast<std::size_t>(got) : 0;
      if (writer_.has_partial()) {
        writer_.finish();
      }
    }
    all.resize(come);
    return all;
  }
  // Writes `payload` repeatedly until the kernel takes a part of it. Returns the expected data.
  std::string fill(const std::string& payload) {
    std::string expected;
    while (!writer_.has_partial() && expected.size() < (std::size_t{64} << 20)) {
      OutgoingFrame one = frame('f', payload);
      if (writer_.write({&one, 1}) == 1 || writer_.has_partial()) {
        expected += std::string(kHeaderBytes, 'f') + payload;
      }
    }
    return expected;
  }

  UniqueFd other_;
  LinkStream stream_;
  FrameWriter writer_{&stream_};
};

TEST_F(TcpFrameWriter, GivesSeveralFramesAtOnce) {
  const std::string empty;
  const std::string word = "word";
  const std::string longer(5000, 'l');
  std::vector<OutgoingFrame> frames = {frame('1', word), frame('2', empty), frame('3', longer)};
  EXPECT_EQ(writer_.write(frames), 3U);
  EXPECT_FALSE(writer_.has_partial());
  const std::string come = read(3 * kHeaderBytes + word.size() + longer.size());
  EXPECT_EQ(come,
            std::string(64, '1') + word + std::string(64, '2') + std::string(64, '3') + longer);
  EXPECT_EQ(writer_.taken(), come.size());
}

TEST_F(TcpFrameWriter, GoesOnWithAFrameOfWhichThereWasAPart) {
  const std::string payload(300'000, 'p');
  const std::string expected = fill(payload);
  ASSERT_TRUE(writer_.has_partial());
  EXPECT_TRUE(writer_.is_partial(nullptr, 0));
  EXPECT_FALSE(writer_.is_partial(nullptr, 1));
  EXPECT_TRUE(read(expected.size()) == expected);
  EXPECT_FALSE(writer_.has_partial());
}

TEST_F(TcpFrameWriter, KeepsThePayloadOfALaneThatGoes) {
  std::string payload(300'000, 'p');
  const std::string expected = fill(payload);
  ASSERT_TRUE(writer_.has_partial());
  ASSERT_TRUE(writer_.keep_payload());
  std::fill(payload.begin(), payload.end(), 'x');
  EXPECT_TRUE(read(expected.size()) == expected);
}

TEST_F(TcpFrameWriter, WritesNothingBehindARestThatWasDropped) {
  fill(std::string(300'000, 'p'));
  writer_.drop_partial();
  EXPECT_FALSE(writer_.has_partial());
  EXPECT_TRUE(stream_.broken);
}

TEST_F(TcpFrameWriter, TellsThatTheOtherSideIsGone) {
  other_.reset();
  const std::string word = "word";
  for (int i = 0; i < 100 && !stream_.broken; ++i) {
    OutgoingFrame one = frame('f', word);
    writer_.write({&one, 1});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(stream_.broken);
  EXPECT_TRUE(stream_.error == EPIPE || stream_.error == ECONNRESET) << stream_.error;
}

}  // namespace
}  // namespace unisono::tcp
