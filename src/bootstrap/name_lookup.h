// Looks up the addresses of a host name.
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

#include "base/deadline.h"

namespace unisono::comm {

struct LookupResult {
  int error = 0;           // of getaddrinfo()
  bool timed_out = false;  // the deadline passed without an answer
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> found{nullptr, ::freeaddrinfo};
};

// A name server that does not answer can take half a minute. The deadline, or its interrupt
// function, ends the wait earlier. Throws aborted.
LookupResult look_up(const std::string& host, const std::string& port, const Deadline& deadline);

}  // namespace unisono::comm
