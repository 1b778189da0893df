// The property of any bytes on a connection after the handshake: the link accepts them or drops the
// connection with a reason, and uses no more memory than its windows.
//
// The bits of the first byte choose: 2, the reader fetches data that was not read; 4, the job has
// checksums; 8, the group is closed and reopened in the middle; 16, data is fetched in one piece.
// If the byte is even, the other bytes are sent unchanged; if it is odd, they are read as frames of
// 16 bytes each (kind, epoch, group, number, released, 3 bytes unused, length), which get valid
// checksums, and their payload.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/tcp/link.h"

namespace unisono::fuzz {

inline std::string frames_from(std::string_view text) {
  std::string wire;
  while (text.size() >= 16) {
    const auto byte = [&text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const auto word = [&byte](std::size_t i) {
      return static_cast<std::uint32_t>(byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16);
    };
    tcp::FrameHeader header{.kind = static_cast<tcp::FrameKind>(byte(0)),
                            .epoch = byte(1),
                            .group = byte(2),
                            .bytes = word(12),
                            .number = byte(3) == 255 ? 0xffffffff : byte(3),
                            .released = byte(4)};
    text.remove_prefix(16);
    std::string frame(tcp::kHeaderBytes, '\0');
    tcp::encode(header, reinterpret_cast<std::byte*>(frame.data()));
    const std::size_t payload = std::min<std::size_t>(header.bytes, text.size());
    wire += frame;
    wire += text.substr(0, payload);
    text.remove_prefix(payload);
    // The rest of a long message is zeros, so that short inputs reach the frames after it.
    if (header.bytes > payload && header.bytes <= transport::kMostBytes) {
      wire.append(header.bytes - payload, '\0');
    }
    if (wire.size() > (std::size_t{8} << 20)) {
      break;
    }
  }
  return wire;
}

// Fetches the data that has arrived, in pieces of at most `most`. Returns true if it is complete.
inline bool fetch_all(tcp::TcpLink& link, tcp::Lane& lane, std::span<std::byte> target,
                      std::size_t& offset, std::size_t most) {
  const std::size_t bytes = target.size();
  for (std::size_t got = 1; got != 0 && offset < bytes; offset += got) {
    got = link.fetch(lane, offset, target.data() + offset, std::min(bytes - offset, most));
  }
  const bool all = offset == bytes;
  offset = all ? 0 : offset;
  return all;
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string tcp_frames_property(std::string_view text) {
  if (text.empty()) {
    return "";
  }
  const bool framed = (text.front() & 1) != 0;
  const std::string wire = framed ? frames_from(text.substr(1)) : std::string(text.substr(1));
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    return "no sockets";
  }
  const UniqueFd other(ends[1]);
  std::vector<tcp::Channel> streams;
  streams.emplace_back(UniqueFd(ends[0]), nullptr, (text.front() & 4) != 0);
  tcp::LinkEvents events;
  constexpr std::uint32_t kSlots = 3;
  std::vector<std::byte> memory(transport::kMostBytes);
  const std::size_t most = (text.front() & 16) != 0 ? memory.size() : 1000;
  tcp::TcpLink link(1, std::move(streams), kSlots, &events);
  tcp::Lane* lane = link.open({.group = 1, .epoch = 0});
  link.send(*lane, "x", 1, 0);
  std::size_t done = 0;
  bool reopened = false;
  std::size_t fetched = 0;
  for (int idle = 0; idle < 2 && !link.health().gone();) {
    const ssize_t put = ::send(other.get(), wire.data() + done, wire.size() - done, MSG_NOSIGNAL);
    done += put > 0 ? static_cast<std::size_t>(put) : 0;
    idle = link.receive() || put > 0 ? 0 : idle + 1;
    if ((text.front() & 8) != 0 && done > wire.size() / 2 && !reopened) {
      link.close(lane);
      lane = link.open({.group = 2, .epoch = 0});
      fetched = 0;
      reopened = true;
    }
    transport::Incoming message;
    const bool fetches = (text.front() & 2) != 0;
    if (fetches ? link.peek_unread(*lane, message) : link.peek(*lane, message)) {
      if ((message.data == nullptr && !fetches) || message.bytes > transport::kMostBytes) {
        return "a message that cannot be";
      }
      if (message.data != nullptr ||
          fetch_all(link, *lane, std::span(memory).first(message.bytes), fetched, most)) {
        link.release(*lane);
      }
    }
  }
  if (link.slots() > kSlots * transport::kMostEarlyLanes) {
    return "more memory than the windows hold";
  }
  if (link.health().failure() &&
      tcp::describe(link.health().failure()).find("rank 1") == std::string::npos) {
    return "a failure that names nobody";
  }
  link.close(lane);
  return "";
}

}  // namespace unisono::fuzz
