#include "comm/rendezvous_auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace unisono::comm {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

void append(std::vector<unsigned char>& to, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  to.insert(to.end(), from, from + bytes);
}

Proof sha256(std::string_view text) {
  Proof digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &length,
                 EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::internal, "SHA-256 is not available in this OpenSSL");
  }
  return digest;
}

}  // namespace

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) {
      throw Error(ErrorCode::resource, "the system gave no random bytes");
    }
    bytes = bytes.subspan(got < 0 ? 0 : static_cast<std::size_t>(got));
  }
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::byte> random(bytes);
  fill_random(random);
  return hex(random);
}

std::string address_of(std::string_view job) {
  const Proof digest = sha256(job);
  return "unisono-" + std::to_string(::geteuid()) + "-" + hex(std::span(digest).first(16));
}

Proof prove(std::string_view token, std::string_view job, Side side, const Hello& hello,
            std::span<const std::byte, kNonceBytes> nonce) {
  std::vector<unsigned char> said;
  said.push_back(static_cast<unsigned char>(side));
  append(said, &hello, sizeof(hello));
  append(said, nonce.data(), nonce.size());
  append(said, job.data(), job.size());
  Proof proof{};
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), said.data(), said.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &length) == nullptr) {
    throw Error(ErrorCode::internal, "HMAC-SHA-256 is not available in this OpenSSL");
  }
  return proof;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace unisono::comm
