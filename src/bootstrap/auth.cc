#include "bootstrap/auth.h"

#include <unistd.h>

#include <vector>

namespace unisono::comm {
namespace {

void append(std::vector<std::byte>& to, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  to.insert(to.end(), from, from + bytes);
}

}  // namespace

std::string address_of(std::string_view job) {
  return address_of(job, ::geteuid());
}

std::string address_of(std::string_view job, uid_t user) {
  const Digest digest = sha256(job);
  return "unisono-" + std::to_string(user) + "-" + hex(std::span(digest).first(16));
}

Proof prove(std::string_view token, std::string_view job, Side side, const Hello& hello,
            std::span<const std::byte, kNonceBytes> nonce) {
  std::vector<std::byte> said;
  said.push_back(static_cast<std::byte>(side));
  append(said, &hello, sizeof(hello));
  append(said, nonce.data(), nonce.size());
  append(said, job.data(), job.size());
  return hmac_sha256(token, said);
}

}  // namespace unisono::comm
