#include "transport/tcp/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "transport/window.h"

namespace unisono::tcp {
namespace {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

constexpr FrameHeader kHeader{.kind = FrameKind::message,
                              .epoch = 0x01020304,
                              .group = 0x1112131415161718,
                              .signature = 0x2122232425262728,
                              .bytes = 0x00012345,
                              .number = 0x41424344,
                              .released = 0x51525354,
                              .sum = 0x61626364};

HeaderBytes encoded(const FrameHeader& header) {
  HeaderBytes bytes{};
  encode(header, bytes.data());
  return bytes;
}

TEST(TcpWire, IsLittleEndianAtTheDocumentedPlaces) {
  const HeaderBytes bytes = encoded(kHeader);
  const auto at = [&bytes](std::size_t i) { return std::to_integer<int>(bytes[i]); };
  EXPECT_EQ(at(0), kWireVersion);
  EXPECT_EQ(at(1), 1);
  EXPECT_EQ(at(4), 0x04);
  EXPECT_EQ(at(8), 0x18);
  EXPECT_EQ(at(15), 0x11);
  EXPECT_EQ(at(16), 0x28);
  EXPECT_EQ(at(24), 0x45);
  EXPECT_EQ(at(28), 0x44);
  EXPECT_EQ(at(32), 0x54);
  EXPECT_EQ(at(36), 0x64);
}

TEST(TcpWire, DecodesWhatItEncodes) {
  FrameHeader header;
  ASSERT_EQ(decode(encoded(kHeader), header), BadFrame::none);
  EXPECT_EQ(header, kHeader);
}

TEST(TcpWire, NoticesEveryChangedBit) {
  for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    HeaderBytes bytes = encoded(kHeader);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    FrameHeader header;
    EXPECT_NE(decode(bytes, header), BadFrame::none) << bit;
  }
}

TEST(TcpWire, RefusesLengthsBeyondTheLimitOfTheKind) {
  const auto verdict = [](FrameKind kind, std::size_t bytes) {
    FrameHeader header = kHeader;
    header.kind = kind;
    header.bytes = static_cast<std::uint32_t>(bytes);
    const HeaderBytes frame = encoded(header);
    return decode(frame, header);
  };
  EXPECT_EQ(verdict(FrameKind::message, transport::kMostBytes), BadFrame::none);
  EXPECT_EQ(verdict(FrameKind::message, transport::kMostBytes + 1), BadFrame::length);
  EXPECT_EQ(verdict(FrameKind::message, 0xffffffff), BadFrame::length);
  EXPECT_EQ(verdict(FrameKind::abort, kMostReason), BadFrame::none);
  EXPECT_EQ(verdict(FrameKind::abort, kMostReason + 1), BadFrame::length);
  EXPECT_EQ(verdict(FrameKind::leave, transport::kMostFarewell), BadFrame::none);
  EXPECT_EQ(verdict(FrameKind::leave, transport::kMostFarewell + 1), BadFrame::length);
  EXPECT_EQ(verdict(FrameKind::credit, 0), BadFrame::none);
  EXPECT_EQ(verdict(FrameKind::credit, 1), BadFrame::length);
}

TEST(TcpWire, RefusesKindsThatThereAreNot) {
  for (const int kind : {0, 5, 255}) {
    FrameHeader header = kHeader;
    header.kind = static_cast<FrameKind>(kind);
    const HeaderBytes frame = encoded(header);
    EXPECT_EQ(decode(frame, header), BadFrame::kind) << kind;
  }
}

}  // namespace
}  // namespace unisono::tcp
