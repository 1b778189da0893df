// The progress of a TLS session's handshake.
#pragma once

#include <cstdint>

namespace unisono::tcp {

enum class TlsState : std::uint8_t { going_on, done, failed };

}  // namespace unisono::tcp
