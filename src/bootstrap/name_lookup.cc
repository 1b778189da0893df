#include "bootstrap/name_lookup.h"

#include <ctime>
#include <utility>

namespace unisono::comm {
namespace {

// What a thread of the C library reads and writes until it is done, whoever has given it up.
struct Request {
  std::string host;
  std::string port;
  addrinfo hints = {};
  gaicb entry = {};

  Request(std::string a_host, std::string a_port)
      : host(std::move(a_host)), port(std::move(a_port)) {
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    entry.ar_name = host.c_str();
    entry.ar_service = port.c_str();
    entry.ar_request = &hints;
  }
};

void sleep(const gaicb* entry, int ms) {
  constexpr int kMsPerS = 1000;
  constexpr long kNsPerMs = 1'000'000;
  const timespec time{.tv_sec = ms / kMsPerS, .tv_nsec = ms % kMsPerS * kNsPerMs};
  ::gai_suspend(&entry, 1, &time);
}

}  // namespace

Looked look_up(const std::string& host, const std::string& port, const Deadline& deadline) {
  // Given up: else it stays for the thread that still uses it, a few hundred bytes.
  const auto give_up = [](Request* request) {
    if (::gai_cancel(&request->entry) != EAI_NOTCANCELED) {
      delete request;
    }
  };
  const std::unique_ptr<Request, decltype(give_up)> request(new Request(host, port), give_up);
  Looked looked;
  // Sanitizers do not know the C library's own threads, and nobody needs one where nobody asks.
  if (!deadline.asks()) {
    addrinfo* found = nullptr;
    looked.error = ::getaddrinfo(host.c_str(), port.c_str(), &request->hints, &found);
    looked.found.reset(looked.error == 0 ? found : nullptr);
    return looked;
  }
  gaicb* entry = &request->entry;
  looked.error = ::getaddrinfo_a(GAI_NOWAIT, &entry, 1, nullptr);
  if (looked.error != 0) {
    return looked;
  }
  while (::gai_error(entry) == EAI_INPROGRESS) {
    deadline.throw_if_interrupted();
    if (deadline.passed()) {
      looked.error = EAI_AGAIN;
      return looked;
    }
    sleep(entry, deadline.poll_ms());
  }
  looked.error = ::gai_error(entry);
  looked.found.reset(looked.error == 0 ? entry->ar_result : nullptr);
  return looked;
}

}  // namespace unisono::comm
