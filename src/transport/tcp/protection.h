// What a job's connections have beside the handshake, and what carries its messages. All ranks of a
// job must have the same: the handshake refuses others, and says which side has what.
#pragma once

#include <cstdint>

namespace unisono::tcp {

struct Protection {
  bool tls = false;           // TLS 1.3 for all that follows the handshake
  bool checksum = false;      // a checksum of each payload
  bool certificates = false;  // each side shows one, beside the token
  bool ucx = false;           // messages go over UCX, and these connections carry the rest

  std::uint8_t bits() const {
    return static_cast<std::uint8_t>((tls ? 1U : 0U) | (checksum ? 2U : 0U) | (ucx ? 4U : 0U) |
                                     (certificates ? 8U : 0U));
  }
  friend bool operator==(const Protection&, const Protection&) = default;
};

// UNISONO_TLS, UNISONO_CHECKSUM and UNISONO_NETWORK. Throws config.
Protection protection_from_environment();

}  // namespace unisono::tcp
