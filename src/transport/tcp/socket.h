// Sockets for connections: non-blocking, closed on exec, without delay.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "transport/tcp/address.h"

namespace unisono::tcp {

struct SocketOptions {
  int send_buffer = 0;  // bytes; 0: the system's choice
  int receive_buffer = 0;
  // Empty: the system's choice; on the loopback device the plain one, because pacing only costs
  // time there.
  std::string congestion = {};
};

struct PortRange {
  int first = 0;  // 0: any free port
  int last = 0;
};

// Listens only at this address, at the first free port of the range. Throws config.
UniqueFd listen_at(const Address& address, const PortRange& ports = {});
// Keeps an address and port that this process has listened at, without listening: strangers find it
// closed. Returns empty if it is taken. listen_again() opens it (false: another process has opened
// it meanwhile); stop_listening() closes it and keeps it.
UniqueFd reserve(const Address& address);
bool listen_again(int socket);
void stop_listening(int socket);
Address local_address(int socket);
Address peer_address(int socket);

// Begins a connection: the socket is writable when it is done, and connect_error() then returns the
// result. `from`: the local address, with any port. If it could not even begin, returns empty and
// sets errno.
UniqueFd begin_connect(const Address& to, const Address* from, const SocketOptions& options);
int connect_error(int socket);  // 0: connected
bool is_connecting(int socket);
// Returns true if an attempt that failed with `error` reached no system that could have answered.
bool is_no_answer(int error);
// The other side is gone and left no unread byte.
bool is_dead(int socket);
// Accepts a pending connection; empty: there is none now.
UniqueFd accept_one(int listener);
// Returns true if sent data has remained unacknowledged, in spite of retransmissions, for this
// long: then the peer's system, or the path to it, is gone. The peer's process may be busy or
// stopped, with its window closed.
bool is_silent(int socket, int silence_ms);
// As above for a connection on which nothing is in transit: the system has sent keepalive probes,
// and has had no answer for this long. It probes after a second.
bool is_unheard(int socket, int silence_ms);
// A peer's system sends something at least every second; one that has been unheard for this long is
// checked.
inline constexpr int kUnheardMs = 1200;
void apply(int socket, const SocketOptions& options, bool loopback);
// Makes the system keep probing a silent peer, and leaves the verdict to is_silent(): the two
// unanswered probes after which the system would end the connection may have been lost in transit.
void keep_though_silent(int socket);

}  // namespace unisono::tcp
