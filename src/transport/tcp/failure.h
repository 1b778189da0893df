// Why a connection is no more.
#pragma once

#include <cstdint>
#include <string>

#include "transport/network.h"
#include "transport/tcp/wire.h"

namespace unisono::tcp {

enum class Reason : std::uint8_t {
  none,
  closed,     // the peer closed it without a word: it has died
  reset,      // the system ended it: `error` says how
  bad_frame,  // what came is no frame of ours
  protocol,   // a frame that a right peer does not send: beyond its window, out of order
  damaged,    // the checksum of a message is wrong
  tls,        // the encryption does: something was damaged or forged
  memory,     // this process has no memory left for what the peer sends
};

struct Failure {
  int peer = -1;  // rank of the world
  Reason reason = Reason::none;
  int error = 0;            // errno, for `reset`
  const char* detail = "";  // for `bad_frame` and `protocol`: a literal

  explicit operator bool() const { return reason != Reason::none; }
};

// What it means to those who wait for that rank.
transport::Loss loss_of(const Failure& failure);

// "the connection to rank 3 was closed by the other side without a word: ...".
std::string describe(const Failure& failure);

}  // namespace unisono::tcp
