// The addresses that a name of a host stands for.
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

#include "base/deadline.h"

namespace unisono::comm {

struct Looked {
  int error = 0;  // of getaddrinfo()
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> found{nullptr, ::freeaddrinfo};
};

// A server of names that does not answer can take half a minute: where the deadline asks whether to
// go on, that or the deadline ends the wait (EAI_AGAIN where it has passed). Throws aborted.
Looked look_up(const std::string& host, const std::string& port, const Deadline& deadline);

}  // namespace unisono::comm
