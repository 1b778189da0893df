// Sockets as the connections want them: non-blocking, closed on exec, without delay.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "transport/tcp/address.h"

namespace unisono::tcp {

struct SocketOptions {
  int send_buffer = 0;  // bytes; 0: as the system thinks best
  int receive_buffer = 0;
  // Empty: what the system has chosen; on the loopback device the plain one, as pacing only costs
  // there.
  std::string congestion = {};
};

struct PortRange {
  int first = 0;  // 0: any that is free
  int last = 0;
};

// Listens at this address only, at the first port of the range that is free. Throws config.
UniqueFd listen_at(const Address& address, const PortRange& ports = {});
// Keeps an address and port that this process has listened at, without listening: strangers find it
// closed. Empty: it is taken. listen_again() opens it, false: another has opened it meanwhile;
// stop_listening() closes it, and keeps it.
UniqueFd reserve(const Address& address);
bool listen_again(int socket);
void stop_listening(int socket);
Address local_address(int socket);
Address peer_address(int socket);

// A connection that is being made: writable when it is done, and then connect_error() says how.
// `from`: the address to send from; its port is any. Not even begun: errno.
UniqueFd begin_connect(const Address& to, const Address* from, const SocketOptions& options);
int connect_error(int socket);  // 0: connected
bool is_connecting(int socket);
// Whether an attempt that failed with `error` reached no system that could have answered it.
bool is_no_answer(int error);
// The other side is no more, and left no byte behind.
bool is_dead(int socket);
// Takes one that waits; none: no more now.
UniqueFd accept_one(int listener);
// Whether what was sent is not acknowledged, again and again, for so long: then the peer's system
// is gone, or the way to it. Its process may be busy or stopped, and its window closed.
bool is_silent(int socket, int silence_ms);
// The same of a connection on which nothing is under way: the system has asked whether the other is
// there, and has had no answer in this time. It asks after a second.
bool is_unheard(int socket, int silence_ms);
// The system of a peer gives a sign after a second at the latest: one of which nothing has been
// heard for so long is looked at.
inline constexpr int kUnheardMs = 1200;
void apply(int socket, const SocketOptions& options, bool loopback);
// The system goes on asking a peer that does not answer, and leaves it to is_silent() to say when
// that is enough: two questions without an answer, after which it would end the connection, can
// have been lost on the way.
void keep_though_silent(int socket);

}  // namespace unisono::tcp
