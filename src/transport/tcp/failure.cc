#include "transport/tcp/failure.h"

#include <cerrno>
#include <cstring>

namespace unisono::tcp {

namespace {

transport::Loss::Kind kind_of(const Failure& failure) {
  using FrameKind = transport::Loss::Kind;
  switch (failure.reason) {
    case Reason::none:
      return FrameKind::none;
    case Reason::closed:
      return FrameKind::closed;
    case Reason::reset:
      return failure.error == ECONNRESET || failure.error == EPIPE ? FrameKind::reset
             : failure.error == ETIMEDOUT                          ? FrameKind::silent
                                                                   : FrameKind::broken;
    case Reason::bad_frame:
    case Reason::protocol:
    case Reason::damaged:
    case Reason::tls:
      return FrameKind::damaged;
    case Reason::memory:
      return FrameKind::given_up;
  }
  return FrameKind::broken;
}

}  // namespace

transport::Loss loss_of(const Failure& failure) {
  return {.peer = failure.peer, .kind = kind_of(failure), .how = describe(failure)};
}

std::string describe(const Failure& failure) {
  const std::string connection = "the connection to rank " + std::to_string(failure.peer);
  switch (failure.reason) {
    case Reason::none:
      return "";
    case Reason::closed:
      return connection +
             " was closed by the peer without notice: most likely its process has ended";
    case Reason::reset:
      if (failure.error == ETIMEDOUT || failure.error == EHOSTUNREACH) {
        return connection + " is silent: the peer's host or the network does not answer";
      }
      return connection +
             " broke: " + std::strerror(failure.error);  // NOLINT(concurrency-mt-unsafe)
    case Reason::bad_frame:
      return connection + " carried bytes that are not a frame (" + failure.detail + ")";
    case Reason::protocol:
      return connection + " carried an invalid frame (" + failure.detail + ")";
    case Reason::damaged:
      return connection + " carried a damaged message: its checksum is wrong";
    case Reason::tls:
      return connection + " carried bytes that cannot be decrypted: they were " +
             "damaged or forged on the way";
    case Reason::memory:
      return "no memory for data of " + connection;
  }
  return connection + " failed";
}

}  // namespace unisono::tcp
