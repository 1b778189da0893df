// What a job's connections have beside the handshake, and what carries its messages. All ranks of a
// job must have the same: the handshake refuses others, and says which side has what.
#pragma once

#include <cstdint>
#include <string_view>

namespace unisono::tcp {

struct Protection {
  bool tls = false;           // TLS 1.3 for all that follows the handshake
  bool checksum = false;      // a CRC-32C of each payload
  bool certificates = false;  // each side shows one, beside the token
  std::uint8_t network = 0;   // of transport::networks(); not 0: these connections carry the rest

  std::uint8_t bits() const {
    return static_cast<std::uint8_t>((tls ? 1U : 0U) | (checksum ? 2U : 0U) |
                                     (certificates ? 8U : 0U) | unsigned{network} << 4);
  }
  friend bool operator==(const Protection&, const Protection&) = default;
};

// What UNISONO_TLS and UNISONO_NETWORK say, and `checksum`: "1", "0", or "" for 1 over TCP. Throws
// config.
Protection protection_of(std::string_view checksum);

}  // namespace unisono::tcp
