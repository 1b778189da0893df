// How far the handshake of a TLS session is.
#pragma once

#include <cstdint>

namespace unisono::tcp {

enum class TlsState : std::uint8_t { going_on, done, failed };

}  // namespace unisono::tcp
