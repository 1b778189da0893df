#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <vector>

#include "unisono/error.hpp"

namespace unisono {

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) {
      throw Error(ErrorCode::resource, "the operating system returned no random bytes");
    }
    bytes = bytes.subspan(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::byte> random(bytes);
  fill_random(random);
  return hex(random);
}

Digest sha256(std::string_view text) {
  Digest digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &length,
                 EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::internal, "SHA-256 is not available in this OpenSSL");
  }
  return digest;
}

Digest hmac_sha256(std::string_view key, std::span<const std::byte> message) {
  Digest digest{};
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &length) == nullptr) {
    throw Error(ErrorCode::internal, "HMAC-SHA-256 is not available in this OpenSSL");
  }
  return digest;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace unisono
