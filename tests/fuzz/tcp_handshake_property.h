// The property of any bytes at the acceptor, or from a false listener: a peer without the token is
// never admitted.
//
// The first byte chooses the side, and the frames: the given bytes (even), or the frames of a valid
// peer with another token, with the given changes (odd): pairs of position and byte, with the
// number of pairs per frame in the second byte.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "bootstrap/handshake.h"

namespace unisono::fuzz {

inline tcp::Identity identity_of(int rank, const char* token) {
  return {.rank = rank, .size = 4, .job = "fuzz", .token = token};
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string tcp_handshake_property(std::string_view text) {
  using tcp::Handshake;
  if (text.size() < 2) {
    return "";
  }
  const auto choice = static_cast<unsigned char>(text[0]);
  const std::size_t changes = static_cast<unsigned char>(text[1]) % 8;
  text.remove_prefix(2);
  const bool listens = (choice & 2) == 0;
  const tcp::Identity mine = identity_of(0, "the token of the job");
  const tcp::Identity stranger = identity_of(1, "another token");
  Handshake tested = listens ? Handshake::listen(mine) : Handshake::dial(mine, {.peer = 1});
  Handshake other = listens ? Handshake::dial(stranger, {.peer = 0}) : Handshake::listen(stranger);
  for (int frames = 0; frames < 6; ++frames) {
    std::array<std::byte, tcp::kHandshakeBytes> frame{};
    if ((choice & 1) == 0) {
      const std::size_t bytes = std::min(text.size(), frame.size());
      std::memcpy(frame.data(), text.data(), bytes);
      text.remove_prefix(bytes);
    } else {
      if (tested.output().size() >= frame.size()) {
        std::memcpy(frame.data(), tested.output().data(), frame.size());
        tested.sent(frame.size());
        other.feed(frame);
      }
      if (other.output().size() >= frame.size()) {
        std::memcpy(frame.data(), other.output().data(), frame.size());
        other.sent(frame.size());
      }
      for (std::size_t i = 0; i < changes && text.size() >= 2; ++i) {
        frame[static_cast<unsigned char>(text[0]) % frame.size()] = static_cast<std::byte>(text[1]);
        text.remove_prefix(2);
      }
    }
    tested.feed(frame);
    if (tested.state() == Handshake::State::admitting || tested.state() == Handshake::State::done) {
      return "a stranger was let in";
    }
  }
  if (tested.state() == Handshake::State::refused && tested.problem().empty()) {
    return "a refusal without a reason";
  }
  return "";
}

}  // namespace unisono::fuzz
