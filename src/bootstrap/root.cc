// Makes rank 0 take the address of the job.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/abstract_address.h"
#include "bootstrap/auth.h"
#include "bootstrap/rendezvous.h"

namespace unisono::comm {
namespace {

// Returns empty if the address is taken.
UniqueFd listen_at(const std::string& address, const RankNames& names) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const AbstractAddress at(address);
  if (!socket || ::bind(socket.get(), at.get(), at.length()) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    if (socket && errno == EADDRINUSE) {
      return {};
    }
    throw Error(ErrorCode::resource, names.text(0) + " cannot listen for the other ranks: " +
                                         std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
  return socket;
}

}  // namespace

Meeting meet_as_root(const JoinRequest& join_request) {
  const std::string address = address_of(join_request.job);
  for (;;) {
    if (UniqueFd listener = listen_at(address, join_request.names)) {
      return Rendezvous(join_request, std::move(listener)).collect();
    }
    // Another process holds the address. If it is also a rank 0, our hello makes it report the
    // conflict to both jobs.
    const Attempt attempt = attempt_to_meet(join_request);
    join_request.deadline.throw_if_interrupted();
    if (join_request.deadline.passed()) {
      throw Error(ErrorCode::connection,
                  join_request.names.text(0) + " could not take the address of its job in " +
                      waited(join_request) +
                      (attempt.obstacle.empty() ? "" : " (" + attempt.obstacle + ")") +
                      "\nanother UNISONO_JOB");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace unisono::comm
