// Authentication: the address of a job, and HMAC-SHA-256 proofs over both sides' messages.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "bootstrap/wire.h"

namespace unisono::comm {

using Proof = Digest;

// Returns the address on which rank 0 of `job` listens: a name for sockaddr_un without the leading
// zero byte.
std::string address_of(std::string_view job);
std::string address_of(std::string_view job, uid_t user);

enum class Side : char { listener = 'L', joiner = 'J' };

// Returns the proof of `side`. It proves that this side knows the job's token and has received this
// hello (with rank, size and version) and this nonce. The two sides have different proofs, so that
// nobody can send a proof back to its author.
Proof prove(std::string_view token, std::string_view job, Side side, const Hello& hello,
            std::span<const std::byte, kNonceBytes> nonce);

}  // namespace unisono::comm
