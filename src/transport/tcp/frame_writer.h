// Gives the frames of one stream to the kernel, and keeps the one of which the kernel took a part.
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

// One of the streams of a link, and what is known of it in both directions.
struct LinkStream {
  Channel channel;
  bool broken = false;  // the kernel takes nothing any more; why shows when it is read,
  int error = 0;        // or is this
  bool ended = false;   // nothing more comes
};

inline constexpr std::size_t kFramesAtOnce = 16;

struct OutgoingFrame {
  std::array<std::byte, kHeaderBytes> header;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  Lane* lane = nullptr;  // whose message it is; nullptr: it is none
  std::uint32_t number = 0;
};

class FrameWriter {
 public:
  explicit FrameWriter(LinkStream* stream) : stream_(stream) {}

  // How many of the frames, at most kFramesAtOnce, the kernel took whole. The one that it took a
  // part of becomes the partial one. REQUIRES: there is none yet.
  std::size_t write(std::span<OutgoingFrame> frames) noexcept;
  bool has_partial() const noexcept { return done_ != 0; }
  // Gives the rest of it. True: it is whole, and there is none any more; partial() is still it.
  bool finish() noexcept;
  const OutgoingFrame& partial() const noexcept { return partial_; }
  bool is_partial(const Lane* lane, std::uint32_t number) const noexcept {
    return has_partial() && partial_.lane == lane && partial_.number == number;
  }
  // Its payload lies there from now on.
  void move_payload(const std::byte* to) noexcept { partial_.data = to; }
  // Its lane goes, and with it the memory of the payload. Others' frames come behind it: so the
  // payload is kept. False: there is no memory for that.
  bool keep_payload() noexcept;
  // Nobody wants the rest, nor anything behind it.
  void drop_partial() noexcept {
    done_ = 0;
    stream_->broken = true;
  }
  // Bytes that the kernel took.
  std::uint64_t taken() const noexcept { return taken_; }

 private:
  std::size_t give(std::span<iovec> parts) noexcept;

  LinkStream* stream_;
  OutgoingFrame partial_ = {};
  std::size_t done_ = 0;  // of its header and payload; 0: there is none
  std::vector<std::byte> kept_ = {};
  std::uint64_t taken_ = 0;
};

}  // namespace unisono::tcp
