// The reasons for the loss of a connection.
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
  bad_frame,  // received data is not a frame
  protocol,   // a frame that a correct peer does not send: beyond its window, out of order
  damaged,    // a wrong checksum
  tls,        // TLS failed: damaged or forged data
  memory,     // this process has no memory for the peer's data
};

struct Failure {
  int peer = -1;  // world rank
  Reason reason = Reason::none;
  int error = 0;            // errno, for `reset`
  const char* detail = "";  // for `bad_frame` and `protocol`: a literal

  explicit operator bool() const { return reason != Reason::none; }
};

// Returns the loss as seen by ranks that wait for this peer.
transport::Loss loss_of(const Failure& failure);

// Returns "the connection to rank 3 was closed by the other side without a word: ...".
std::string describe(const Failure& failure);

}  // namespace unisono::tcp
