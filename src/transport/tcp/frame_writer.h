// Passes the frames of one stream to the kernel. Keeps a frame of which the kernel took only a
// part.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/tcp/channel.h"
#include "transport/tcp/wire.h"

namespace unisono::tcp {

struct Lane;

// One of the streams of a link, and its state in both directions.
struct LinkStream {
  Channel channel;
  bool broken = false;  // the kernel takes no more data; the reason shows when reading,
  int error = 0;        // or is this
  bool ended = false;   // nothing more comes
};

inline constexpr std::size_t kFramesAtOnce = 16;

struct OutgoingFrame {
  std::array<std::byte, kHeaderBytes> header;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  Lane* lane = nullptr;  // the lane of the message; nullptr: no message
  std::uint32_t number = 0;
};

class FrameWriter {
 public:
  explicit FrameWriter(LinkStream* stream) : stream_(stream) {}

  // Writes at most kFramesAtOnce frames. Returns how many of them the kernel took whole. A frame
  // that the kernel took in part becomes the partial frame. REQUIRES: there is no partial frame
  // yet.
  std::size_t write(std::span<OutgoingFrame> frames) noexcept;
  bool has_partial() const noexcept { return done_ != 0; }
  // Writes the rest of the partial frame. Returns true if the frame is now complete; partial()
  // still returns the frame then.
  bool finish() noexcept;
  const OutgoingFrame& partial() const noexcept { return partial_; }
  bool is_partial(const Lane* lane, std::uint32_t number) const noexcept {
    return has_partial() && partial_.lane == lane && partial_.number == number;
  }
  // Notes that the payload of the partial frame has moved to `to`.
  void move_payload(const std::byte* to) noexcept { partial_.data = to; }
  // Call this before the lane of the partial frame closes and its memory is freed. Copies the
  // payload, because the frame must be completed before other frames can follow. Returns false if
  // there is no memory for the copy.
  bool keep_payload() noexcept;
  // Drops the rest of the partial frame, and marks the stream as broken.
  void drop_partial() noexcept {
    done_ = 0;
    stream_->broken = true;
  }
  // Number of bytes that the kernel took.
  std::uint64_t taken() const noexcept { return taken_; }

 private:
  std::size_t give(std::span<iovec> parts) noexcept;

  LinkStream* stream_;
  OutgoingFrame partial_ = {};
  std::size_t done_ = 0;  // of its header and payload; 0: there is no partial frame
  std::vector<std::byte> kept_ = {};
  std::uint64_t taken_ = 0;
};

}  // namespace unisono::tcp
