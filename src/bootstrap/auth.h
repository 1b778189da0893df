// Names and proofs: the address of a job, and HMAC-SHA-256 over what both sides said.
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

// Where rank 0 of `job` listens: a name for sockaddr_un without the leading zero byte.
std::string address_of(std::string_view job);
std::string address_of(std::string_view job, uid_t user);

enum class Side : char { listener = 'L', joiner = 'J' };

// What `side` proves to the other: that it knows the token of this job and heard this very hello
// (with its rank, size and version) and this nonce. The sides differ, so that no proof can be
// echoed.
Proof prove(std::string_view token, std::string_view job, Side side, const Hello& hello,
            std::span<const std::byte, kNonceBytes> nonce);

}  // namespace unisono::comm
