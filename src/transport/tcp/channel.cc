#include "transport/tcp/channel.h"

#include <sys/socket.h>

#include <cerrno>

namespace unisono::tcp {

ssize_t Channel::send(std::span<iovec> parts) noexcept {
  if (tls_ != nullptr) {
    return tls_->send(parts);
  }
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (parts.size() == 1) {  // the plain call is faster
    return ::send(get(), parts[0].iov_base, parts[0].iov_len, kFlags);
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(get(), &message, kFlags);
}

ssize_t Channel::receive(std::span<iovec> parts) noexcept {
  if (tls_ != nullptr) {
    return tls_->receive(parts);
  }
  return parts.size() == 1 ? ::recv(get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                           : ::readv(get(), parts.data(), static_cast<int>(parts.size()));
}

bool Channel::is_readable() const noexcept {
  std::byte first{};
  return has_unread() || ::recv(get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

}  // namespace unisono::tcp
