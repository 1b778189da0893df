// The protection of a job's connections beyond the handshake, and the network that carries the
// job's messages. Both must be equal on all ranks: the handshake refuses a peer with other
// settings, and reports the settings of both sides.
#pragma once

#include <cstdint>
#include <optional>

namespace unisono::tcp {

struct Protection {
  bool tls = false;           // TLS 1.3 for everything after the handshake
  bool checksum = false;      // a CRC-32C of each payload
  bool certificates = false;  // each side shows one, in addition to the token
  std::uint8_t network = 0;   // in transport::networks(); not 0: it carries the messages

  std::uint8_t bits() const {
    return static_cast<std::uint8_t>((tls ? 1U : 0U) | (checksum ? 2U : 0U) |
                                     (certificates ? 8U : 0U) | unsigned{network} << 4);
  }
  friend bool operator==(const Protection&, const Protection&) = default;
};

// Reads UNISONO_TLS and UNISONO_NETWORK. If `checksum` is not given, TCP uses a checksum. Throws
// config.
Protection protection_of(std::optional<bool> checksum);

}  // namespace unisono::tcp
