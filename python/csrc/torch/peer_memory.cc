#include "peer_memory.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>

#include "base/abstract_address.h"
#include "base/secret.h"
#include "bootstrap/process.h"
#include "bootstrap/wire.h"

namespace unisono_torch {
namespace {

using unisono::Error;
using unisono::ErrorCode;
using unisono::UniqueFd;

constexpr int kLookMs = 20;  // between checks for dead processes

UniqueFd new_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    throw Error(ErrorCode::resource, std::string("a socket for symmetric memory cannot be made: ") +
                                         std::strerror(errno) +
                                         "\nraise the limit of open files (ulimit -n)");
  }
  return socket;
}

// Identifies the peer process; returns false if it belongs to another user.
bool knows(int socket, PeerProcess& process) {
  const auto credentials = unisono::comm::credentials_of(socket);
  if (!credentials.has_value() || credentials->uid != geteuid()) {
    return false;
  }
  process.pid = credentials->pid;
  process.handle = unisono::comm::open_process(credentials->pid);
  return true;
}

[[noreturn]] void throw_lost(int rank, const std::string& end) {
  throw Error(
      ErrorCode::peer_lost,
      "rank " + std::to_string(rank) + " " + (end.empty() ? "is gone" : end) +
          " during the rendezvous of symmetric memory\nlook at the last output of that rank",
      {.peer = rank});
}

// Checks the size: accessing memory beyond a shorter file would raise SIGBUS later.
UniqueFd whole(UniqueFd memory, std::size_t bytes) {
  struct stat status = {};
  if (::fstat(memory.get(), &status) != 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    throw Error(ErrorCode::corrupt,
                "a rank passed symmetric memory of another size than it announced");
  }
  return memory;
}

}  // namespace

void DescriptorExchange::Wait::a_little(int socket, int for_rank) const {
  if (deadline.passed()) {
    throw Error(ErrorCode::timeout,
                "rank " + std::to_string(for_rank) +
                    " has come to the rendezvous of symmetric memory, but does not continue",
                {.peer = for_rank});
  }
  look();
  pollfd entry{socket, POLLIN, 0};
  const int left = deadline.left_ms();
  ::poll(&entry, 1, left < 0 ? kLookMs : std::min(left, kLookMs));
}

std::size_t PeerMemory::room(std::size_t bytes, std::size_t pad_bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4 ||
      pad_bytes > std::numeric_limits<std::size_t>::max() / 4) {
    throw Error(ErrorCode::usage,
                "symmetric memory of " + std::to_string(bytes) + " bytes; this exceeds any memory");
  }
  return pad_room(pad_bytes) + std::max<std::size_t>(bytes, 1);
}

PeerMemory::PeerMemory(std::size_t bytes, std::size_t pad_bytes)
    : PeerMemory(unisono::shm::create_memory("unisono-symmetric", room(bytes, pad_bytes)), bytes,
                 pad_bytes) {}

PeerMemory::PeerMemory(UniqueFd memory, std::size_t bytes, std::size_t pad_bytes)
    : memory_(whole(std::move(memory), room(bytes, pad_bytes))),
      bytes_(bytes),
      pad_bytes_(pad_bytes),
      mapping_(memory_.get(), room(bytes, pad_bytes)) {}

std::string PeerProcess::end() const {
  if (!unisono::comm::has_ended(handle, 0)) {
    return {};
  }
  const std::string how = unisono::comm::how_it_ended(pid, handle);
  return how.starts_with("killed") ? "was " + how : how;
}

DescriptorExchange::DescriptorExchange()
    : name_("unisono-symmetric-" + unisono::random_hex(16)), listener_(new_socket()) {
  const unisono::AbstractAddress address(name_);
  if (::bind(listener_.get(), address.get(), address.length()) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    throw Error(
        ErrorCode::resource,
        std::string("a socket for symmetric memory cannot be opened: ") + std::strerror(errno));
  }
}

void DescriptorExchange::give(int rank, int descriptor, const std::string& endpoint, int to,
                              Peer& peer, const Wait& wait) {
  const unisono::AbstractAddress address(endpoint);
  UniqueFd socket = new_socket();
  while (::connect(socket.get(), address.get(), address.length()) != 0) {
    if (errno != EAGAIN && errno != EINTR) {
      throw_lost(to, "");
    }
    wait.a_little(-1, to);
  }
  if (!knows(socket.get(), peer.process)) {
    throw_lost(to, "");
  }
  const std::int32_t self = rank;
  for (;;) {
    switch (unisono::comm::send_packet(socket.get(), unisono::comm::FrameType::descriptor, false,
                                       std::as_bytes(std::span(&self, 1)),
                                       std::span(&descriptor, 1))) {
      case unisono::comm::Io::done:
        return;
      case unisono::comm::Io::closed:
        throw_lost(to, peer.process.end());
      case unisono::comm::Io::would_block:
        wait.a_little(-1, to);
    }
  }
}

void DescriptorExchange::take(std::vector<Peer>& peers) {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      break;
    }
    if (PeerProcess process; knows(socket.get(), process)) {
      pending_.push_back(std::move(socket));
    }
  }
  std::erase_if(pending_, [&](const UniqueFd& socket) {
    unisono::comm::Frame frame;
    bool more = false;
    const auto got = unisono::comm::receive_packet(socket.get(), frame, more);
    std::int32_t from = -1;
    if (got == unisono::comm::Io::done && frame.bytes.size() == sizeof(from) &&
        frame.fds.size() == 1) {
      std::memcpy(&from, frame.bytes.data(), sizeof(from));
      if (from >= 0 && static_cast<std::size_t>(from) < peers.size()) {
        peers[static_cast<std::size_t>(from)].memory = std::move(frame.fds[0]);
      }
    }
    return got != unisono::comm::Io::would_block;
  });
}

std::vector<DescriptorExchange::Peer> DescriptorExchange::trade(
    int rank, const std::vector<std::string>& endpoints, int descriptor, const Wait& wait) {
  std::vector<Peer> peers(endpoints.size());
  const int size = static_cast<int>(endpoints.size());
  for (int to = 0; to < size; ++to) {
    if (to != rank) {
      give(rank, descriptor, endpoints[static_cast<std::size_t>(to)], to,
           peers[static_cast<std::size_t>(to)], wait);
    }
  }
  for (int from = 0; from < size; ++from) {
    const Peer& peer = peers[static_cast<std::size_t>(from)];
    while (from != rank && !peer.memory) {
      // Checks for the end first, because data that the rank sent before it ended is readable
      // afterwards.
      const std::string end = peer.process.end();
      take(peers);
      if (peer.memory) {
        break;
      }
      if (!end.empty()) {
        throw_lost(from, end);
      }
      wait.a_little(listener_.get(), from);
    }
  }
  return peers;
}

}  // namespace unisono_torch
