#include "bootstrap/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace unisono::comm {
namespace {

constexpr std::size_t kMostFrameBytes = std::size_t{1} << 30;
constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * (kMostDescriptors + 3));

struct alignas(cmsghdr) Control {
  std::array<char, kControlBytes> bytes;
};

Io failed_send(int code) {
  switch (code) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS:
      return Io::would_block;
    default:
      return Io::closed;
  }
}

Io send_message(int socket, std::span<iovec> parts, std::span<const int> fds) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  Control control;
  if (!fds.empty()) {
    control = {};
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
      return Io::done;
    }
    if (errno != EINTR) {
      return failed_send(errno);
    }
  }
}

void take_descriptors(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

// Returns the number of bytes in one packet; -1 if there is none now; 0 if the socket is closed.
ssize_t receive_message(int socket, std::span<iovec> parts, std::vector<UniqueFd>* fds) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  Control control;
  if (fds != nullptr) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
  }
  for (int resets = 0;;) {
    const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got >= 0) {
      if (fds != nullptr) {
        take_descriptors(message, *fds);
      }
      if ((message.msg_flags & MSG_CTRUNC) != 0 && fds != nullptr) {
        throw Error(ErrorCode::resource,
                    "a file descriptor from another rank could not be installed: this process has "
                    "too many open files\nraise the limit of open files (ulimit -n)");
      }
      return (message.msg_flags & MSG_TRUNC) != 0 ? 0 : got;
    }
    // A peer that closes while data for it is unread resets the connection. The error is reported
    // once; the data that the peer sent before (its reason) can still be read.
    if (errno == ECONNRESET && ++resets < 3) {
      continue;
    }
    if (errno != EINTR) {
      return errno == EAGAIN ? -1 : 0;
    }
  }
}

}  // namespace

Io send_packet(int socket, FrameType type, bool more, std::span<const std::byte> bytes,
               std::span<const int> fds) {
  PacketHeader header{type, more ? 1U : 0U};
  std::array<iovec, 2> parts = {
      iovec{&header, sizeof(header)},
      iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};  // NOLINT: sendmsg only reads
  return send_message(socket, parts, fds);
}

Io receive_packet(int socket, Frame& frame, bool& more) {
  PacketHeader header{};
  const std::size_t before = frame.bytes.size();
  if (before > kMostFrameBytes) {
    return Io::closed;
  }
  frame.bytes.resize(before + kPacketBytes);
  std::array<iovec, 2> parts = {iovec{&header, sizeof(header)},
                                iovec{frame.bytes.data() + before, kPacketBytes}};
  const ssize_t got = receive_message(socket, parts, &frame.fds);
  const bool whole = got >= static_cast<ssize_t>(sizeof(header));
  frame.bytes.resize(before + (whole ? static_cast<std::size_t>(got) - sizeof(header) : 0));
  if (!whole) {
    return got < 0 ? Io::would_block : Io::closed;
  }
  if (before != 0 && header.type != frame.type) {  // an error interrupts a longer frame
    frame.bytes.erase(frame.bytes.begin(),
                      frame.bytes.begin() + static_cast<std::ptrdiff_t>(before));
  }
  frame.type = header.type;
  more = header.more != 0;
  return Io::done;
}

bool send_frame(int socket, FrameType type, std::span<const std::byte> bytes,
                std::span<const int> fds, const AwaitSocket& wait) {
  do {
    const auto part = bytes.first(std::min(bytes.size(), kPacketBytes));
    const bool more = part.size() < bytes.size();
    const Io result = send_packet(socket, type, more, part, fds);
    if (result == Io::closed) {
      return false;
    }
    if (result == Io::would_block) {
      wait(POLLOUT);
      continue;
    }
    bytes = bytes.subspan(part.size());
    fds = {};
    if (!more) {
      return true;
    }
  } while (true);
}

std::optional<Frame> receive_frame(int socket, const AwaitSocket& wait) {
  Frame frame;
  for (bool more = true; more;) {
    switch (receive_packet(socket, frame, more)) {
      case Io::closed:
        return std::nullopt;
      case Io::would_block:
        wait(POLLIN);
        break;
      case Io::done:
        break;
    }
  }
  return frame;
}

Io send_hello(int socket, const Hello& hello) {
  Hello copy = hello;
  std::array<iovec, 1> parts = {iovec{&copy, sizeof(copy)}};
  return send_message(socket, parts, {});
}

Io receive_hello(int socket, Hello& hello) {
  std::array<iovec, 1> parts = {iovec{&hello, sizeof(hello)}};
  const ssize_t got = receive_message(socket, parts, nullptr);
  if (got < 0) {
    return Io::would_block;
  }
  return got == static_cast<ssize_t>(sizeof(hello)) ? Io::done : Io::closed;
}

bool wait_for(int socket, short events, const Deadline& deadline) {
  pollfd entry{socket, events, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, deadline.poll_ms());
    if (ready > 0) {
      return true;
    }
    deadline.throw_if_interrupted();
    if (ready == 0 && deadline.passed()) {
      return false;
    }
  }
}

std::optional<Credentials> credentials_of(int socket) {
  ucred found{};
  socklen_t length = sizeof(found);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) {
    return std::nullopt;
  }
  return Credentials{found.pid, found.uid};
}

}  // namespace unisono::comm
