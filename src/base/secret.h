// Primitives of the proofs: random bytes, SHA-256, HMAC-SHA-256, and comparison in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace unisono {

using Digest = std::array<std::byte, 32>;

// From the system's generator. Throws resource.
void fill_random(std::span<std::byte> bytes);
std::string random_hex(std::size_t bytes);
std::string hex(std::span<const std::byte> bytes);

// Throw internal where OpenSSL has none.
Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::span<const std::byte> message);

// In constant time.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace unisono
