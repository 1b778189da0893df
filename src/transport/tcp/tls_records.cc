#include "transport/tcp/tls_records.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace unisono::tcp {

// Returns 0 if there is none yet.
std::size_t TlsRecords::whole_record() const noexcept {
  const std::size_t ahead = in_end_ - in_begin_;
  if (ahead < kHeader) {
    return 0;
  }
  const std::byte* header = in_.data() + in_begin_;
  const std::size_t body =
      std::to_integer<std::size_t>(header[3]) << 8 | std::to_integer<std::size_t>(header[4]);
  if (body + kHeader > kMost) {
    return ahead;  // invalid: OpenSSL will report it
  }
  return ahead >= body + kHeader ? body + kHeader : 0;
}

bool TlsRecords::fill() noexcept {
  if (in_begin_ != 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  const ssize_t got = ::recv(socket_, in_.data() + in_end_, in_.size() - in_end_, MSG_DONTWAIT);
  if (got > 0) {
    in_end_ += static_cast<std::size_t>(got);
    return true;
  }
  ended_ = ended_ || got == 0;
  error_ = got < 0 && errno != EAGAIN && errno != EINTR ? errno : error_;
  return false;
}

std::size_t TlsRecords::take(char* to, std::size_t bytes) noexcept {
  while (open_ == 0) {
    open_ = whole_record();
    if (open_ == 0 && !fill()) {
      return 0;
    }
  }
  const std::size_t part = std::min(bytes, open_);
  std::memcpy(to, in_.data() + in_begin_, part);
  in_begin_ += part;
  open_ -= part;
  return part;
}

bool TlsRecords::put(const char* from, std::size_t bytes) noexcept {
  if (bytes > out_.size() - out_end_) {
    return false;
  }
  std::memcpy(out_.data() + out_end_, from, bytes);
  out_end_ += bytes;
  return true;
}

bool TlsRecords::push() noexcept {
  while (out_begin_ != out_end_) {
    const ssize_t put = ::send(socket_, out_.data() + out_begin_, out_end_ - out_begin_,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) {
      error_ = errno != EAGAIN && errno != EINTR && errno != ENOBUFS ? errno : error_;
      return false;
    }
    out_begin_ += static_cast<std::size_t>(put);
  }
  out_begin_ = 0;
  out_end_ = 0;
  return true;
}

}  // namespace unisono::tcp
