#include "transport/tcp/frame_writer.h"

#include <cerrno>
#include <cstring>

namespace unisono::tcp {
namespace {

// A header and a payload this short are combined, because one plain call is faster than two parts.
constexpr std::size_t kCopiedBytes = 4096;

}  // namespace

// Returns the number of bytes that the kernel took. A broken connection does not count as a failure
// yet: the peer's last message, which says that the peer leaves or why the world ends, may still be
// unread.
std::size_t FrameWriter::give(std::span<iovec> parts) noexcept {
  const ssize_t got = stream_->channel.send(parts);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
      stream_->broken = true;
      stream_->error = errno;  // the system reports it only once
    }
    return 0;
  }
  taken_ += static_cast<std::size_t>(got);
  return static_cast<std::size_t>(got);
}

std::size_t FrameWriter::write(std::span<OutgoingFrame> frames) noexcept {
  std::size_t left = 0;
  if (frames.size() == 1 && frames[0].bytes <= kCopiedBytes) {
    std::byte together[kHeaderBytes + kCopiedBytes];
    std::memcpy(together, frames[0].header.data(), kHeaderBytes);
    if (frames[0].bytes != 0) {
      std::memcpy(together + kHeaderBytes, frames[0].data, frames[0].bytes);
    }
    iovec part{together, kHeaderBytes + frames[0].bytes};
    left = give({&part, 1});
  } else {
    iovec parts[2 * kFramesAtOnce];
    std::size_t count = 0;
    for (OutgoingFrame& frame : frames) {
      parts[count++] = {frame.header.data(), kHeaderBytes};
      if (frame.bytes != 0) {
        parts[count++] = {const_cast<std::byte*>(frame.data), frame.bytes};  // NOLINT: only read
      }
    }
    left = give({parts, count});
  }
  std::size_t whole = 0;
  for (; whole < frames.size() && left >= kHeaderBytes + frames[whole].bytes; ++whole) {
    left -= kHeaderBytes + frames[whole].bytes;
  }
  if (left != 0) {
    partial_ = frames[whole];
    done_ = left;
  }
  return whole;
}

bool FrameWriter::finish() noexcept {
  iovec parts[2];
  std::size_t count = 0;
  if (done_ < kHeaderBytes) {
    parts[count++] = {partial_.header.data() + done_, kHeaderBytes - done_};
  }
  const std::size_t done = done_ < kHeaderBytes ? 0 : done_ - kHeaderBytes;
  if (done < partial_.bytes) {
    parts[count++] = {const_cast<std::byte*>(partial_.data) + done,  // NOLINT: only read
                      partial_.bytes - done};
  }
  done_ += give({parts, count});
  if (done_ < kHeaderBytes + partial_.bytes) {
    return false;
  }
  done_ = 0;
  return true;
}

bool FrameWriter::keep_payload() noexcept {
  partial_.lane = nullptr;
  try {
    kept_.assign(partial_.data, partial_.data + partial_.bytes);
  } catch (...) {
    return false;
  }
  partial_.data = kept_.data();
  return true;
}

}  // namespace unisono::tcp
