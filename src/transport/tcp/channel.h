// A connected stream to a rank: a socket and its protection. The handshake makes it; a link uses
// it.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transport/tcp/tls.h"

namespace unisono::tcp {

class Channel {
 public:
  Channel() = default;
  Channel(UniqueFd socket) : socket_(std::move(socket)) {}  // NOLINT: a bare socket is one
  Channel(UniqueFd socket, std::unique_ptr<Tls> tls, bool checksum)
      : socket_(std::move(socket)), tls_(std::move(tls)), checksum_(checksum) {}

  explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
  int get() const noexcept { return socket_.get(); }
  void reset() noexcept {
    tls_.reset();
    socket_.reset();
  }
  bool checksum() const noexcept { return checksum_; }
  bool encrypted() const noexcept { return tls_ != nullptr; }

  // These behave like the system calls on a non-blocking socket. One call takes several parts.
  ssize_t send(std::span<iovec> parts) noexcept;
  ssize_t receive(std::span<iovec> parts) noexcept;
  // Returns true if send() has accepted data that the kernel has not taken yet. push() hands this
  // data over, and returns false if the kernel does not take all of it.
  bool has_unsent() const noexcept { return tls_ != nullptr && tls_->has_unsent(); }
  bool push() noexcept { return tls_ == nullptr || tls_->push(); }
  // Returns true if the kernel has delivered data that receive() has not returned yet. The socket
  // no longer shows this data as readable.
  bool has_unread() const noexcept { return tls_ != nullptr && tls_->has_unread(); }
  // Returns true if receive() would return data or the end of the stream.
  bool is_readable() const noexcept;

 private:
  UniqueFd socket_;
  std::unique_ptr<Tls> tls_;
  bool checksum_ = false;
};

// The channels of one rank to all others: [rank][stream].
using Channels = std::vector<std::vector<Channel>>;

// Makes channels of bare sockets.
inline std::vector<Channel> channels_of(std::vector<UniqueFd> sockets) {
  std::vector<Channel> channels;
  for (UniqueFd& socket : sockets) {
    channels.emplace_back(std::move(socket));
  }
  return channels;
}

}  // namespace unisono::tcp
