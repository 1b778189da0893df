// Primitives for authentication: random bytes, SHA-256, HMAC-SHA-256, and constant-time comparison.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace unisono {

using Digest = std::array<std::byte, 32>;

// Uses the system's generator. Throws Error(resource).
void fill_random(std::span<std::byte> bytes);
std::string random_hex(std::size_t bytes);
std::string hex(std::span<const std::byte> bytes);

// Throw Error(internal) if OpenSSL does not provide the algorithm.
Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::span<const std::byte> message);

// Compares in constant time.
bool equal(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace unisono
