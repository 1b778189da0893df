#include "bootstrap/star.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace unisono::comm {
namespace {

constexpr int kHelloGraceMs = 1000;

using Parts = std::vector<std::vector<std::byte>>;

// Packs all parts: first their lengths, then their bytes.
std::vector<std::byte> pack(const Parts& parts) {
  std::vector<std::byte> all(parts.size() * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t length = parts[i].size();
    std::memcpy(all.data() + i * sizeof(length), &length, sizeof(length));
    all.insert(all.end(), parts[i].begin(), parts[i].end());
  }
  return all;
}

// Returns nothing if pack() cannot have made these bytes from `count` parts.
Parts unpack(std::span<const std::byte> all, std::size_t count) {
  Parts parts;
  const std::size_t table = count * sizeof(std::uint64_t);
  if (all.size() < table) {
    return {};
  }
  std::span<const std::byte> rest = all.subspan(table);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, all.data() + i * sizeof(length), sizeof(length));
    if (length > rest.size()) {
      return {};
    }
    parts.emplace_back(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
    rest = rest.subspan(length);
  }
  return rest.empty() ? parts : Parts{};
}

}  // namespace

Star::Star(const JoinRequest& join_request, std::vector<UniqueFd> links, int timeout_ms,
           std::function<bool()> interrupted)
    : rank_(join_request.rank),
      size_(join_request.size),
      names_(join_request.names),
      links_(std::move(links)),
      timeout_ms_(timeout_ms),
      interrupted_(std::move(interrupted)) {}

Parts Star::all_gather(std::span<const std::byte> mine) {
  begin();
  Parts parts(static_cast<std::size_t>(size_));
  if (rank_ != 0) {
    send(0, FrameType::data, mine, {});
    const Frame frame = receive(FrameType::data);
    parts = unpack(frame.bytes, parts.size());
    if (parts.empty()) {
      fail(ErrorCode::corrupt, names_.text(0) + " sent a set-up message that cannot be read", 0);
    }
    return parts;
  }
  parts[0].assign(mine.begin(), mine.end());
  for (int from = 1; from < size_; ++from) {
    parts[static_cast<std::size_t>(from)] = receive_from(from, FrameType::data).bytes;
  }
  if (size_ > 1) {
    const std::vector<std::byte> all = pack(parts);
    for (int to = 1; to < size_; ++to) {
      send(to, FrameType::data, all, {});
    }
  }
  return parts;
}

UniqueFd Star::broadcast_fd(int fd) {
  begin();
  if (rank_ != 0) {
    Frame frame = receive(FrameType::descriptor);
    if (frame.fds.size() != 1) {
      fail(ErrorCode::corrupt, names_.text(0) + " sent no descriptor", 0);
    }
    return std::move(frame.fds[0]);
  }
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    fail(ErrorCode::resource, names_.text(0) +
                                  " has no free file descriptor for its host's shared memory: " +
                                  std::strerror(errno) +  // NOLINT(concurrency-mt-unsafe)
                                  "\nraise the limit of open files (ulimit -n)");
  }
  for (int to = 1; to < size_; ++to) {
    send(to, FrameType::descriptor, {}, std::span(&fd, 1));
  }
  return copy;
}

void Star::send(int to, FrameType type, std::span<const std::byte> bytes,
                std::span<const int> fds) {
  const AwaitSocket wait = [this, to](short events) {
    // Does not watch other ranks: a rank that has its part of this exchange may leave.
    rank_ == 0 ? wait_as_root(to, events, false) : wait_as_other(events);
  };
  if (!send_frame(link(to), type, bytes, fds, wait)) {
    fail_closed(to);
  }
}

Frame Star::receive(FrameType expected) {
  return receive_from(0, expected);
}

Frame Star::receive_from(int from, FrameType expected) {
  const AwaitSocket wait = [this, from](short events) {
    rank_ == 0 ? wait_as_root(from, events, true) : wait_as_other(events);
  };
  auto frame = receive_frame(link(from), wait);
  if (!frame) {
    fail_closed(from);
  }
  if (frame->type == FrameType::error) {
    fail_with(*frame);
  }
  if (frame->type != expected) {
    fail(ErrorCode::mismatch,
         names_.text(from) + " makes another step of the set-up than " + names_.text(rank_) +
             "\nmake the same calls in the same order on all ranks",
         from);
  }
  return std::move(*frame);
}

void Star::wait_as_root(int peer, short events, bool watch_others) {
  std::vector<pollfd> entries;
  for (int rank = 1; rank < size_; ++rank) {
    const bool awaited = rank == peer;
    entries.push_back({awaited || watch_others ? link(rank) : -1,
                       static_cast<short>(awaited ? events : POLLRDHUP), 0});
  }
  const int ready = ::poll(entries.data(), entries.size(), deadline_.poll_ms());
  if (deadline_.is_interrupted()) {
    fail(ErrorCode::aborted, names_.text(0) + " was interrupted before all ranks were connected");
  }
  if (ready == 0 && deadline_.passed()) {
    fail(ErrorCode::timeout,
         "rank" + absent_after(peer) + " did not take part in the set-up within " +
             std::to_string(timeout_ms_) +
             " ms\ncheck what that rank does, or raise UNISONO_CONNECT_TIMEOUT_MS",
         peer);
  }
  if (ready <= 0 || entries[static_cast<std::size_t>(peer - 1)].revents != 0) {
    return;
  }
  for (int rank = 1; rank < size_; ++rank) {
    if (entries[static_cast<std::size_t>(rank - 1)].revents != 0) {
      fail_closed(rank);
    }
  }
}

// Waits for rank 0's verdict, which names the right rank. Rank 0 gets a little extra time for it.
void Star::wait_as_other(short events) {
  if (!wait_for(link(0), events, deadline_.later_by_ms(kHelloGraceMs))) {
    fail(ErrorCode::timeout,
         names_.text(0) + " did not finish the set-up within " + std::to_string(timeout_ms_) +
             " ms\ncheck what the other ranks do, or raise UNISONO_CONNECT_TIMEOUT_MS",
         0);
  }
}

// Returns " 3", or "s 3, 5": the ranks from `first` on that have not sent anything.
std::string Star::absent_after(int first) const {
  std::string list;
  int count = 0;
  for (int rank = first; rank < size_; ++rank) {
    if (!wait_for(link(rank), POLLIN, Deadline::after_ms(0))) {
      list += (list.empty() ? " " : ", ") + std::to_string(names_.number(rank));
      ++count;
    }
  }
  return (count > 1 ? "s" : "") + list;
}

void Star::fail_closed(int peer) {
  // A rank that closes may have sent the reason after its other data.
  const AwaitSocket no_wait = [](short) {
    throw Error(ErrorCode::internal, "nothing to wait for");
  };
  while (const auto frame = receive_frame(link(peer), no_wait)) {
    if (frame->type == FrameType::error) {
      fail_with(*frame);
    }
  }
  fail(ErrorCode::peer_lost,
       names_.text(peer) +
           " closed its connection during the set-up\nlook at the output "
           "of that rank",
       peer);
}

void Star::fail_with(const Frame& reason) {
  const Error error = error_from(reason);
  if (rank_ == 0) {
    tell(error);
  }
  throw Error(error.code(), std::string(error.message()),
              {.rank = names_.number(rank_), .peer = error.context().peer});
}

void Star::fail(ErrorCode code, const std::string& message, int peer) {
  const Error error(code, message, {.rank = names_.number(rank_), .peer = names_.number(peer)});
  if (rank_ == 0) {
    tell(error);
  }
  throw error;
}

void Star::tell(const Error& error) noexcept {
  try {
    const auto bytes = error_bytes(error.code(), error.message(), error.context().peer);
    for (const UniqueFd& to : links_) {
      if (to) {
        send_packet(to.get(), FrameType::error, false, bytes, {});
      }
    }
  } catch (const std::bad_alloc&) {  // they see that the connection is closed
  }
}

}  // namespace unisono::comm
