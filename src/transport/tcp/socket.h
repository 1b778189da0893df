// Sockets for connections: non-blocking, closed on exec, without delay.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "transport/tcp/address.h"

namespace unisono::tcp {

struct SocketOptions {
  int send_buffer = 0;  // bytes; 0: the system's choice
  int receive_buffer = 0;
  // Congestion control. Empty: the system's choice, except on the loopback device, which uses the
  // plain algorithm because pacing only costs time there.
  std::string congestion = {};
};

struct PortRange {
  int first = 0;  // 0: any free port
  int last = 0;
};

// Listens only at this address, at the first free port of the range. Throws config.
UniqueFd listen_at(const Address& address, const PortRange& ports = {});
// Keeps an address and port for this process without listening, so that strangers find the port
// closed. Returns empty if the port is taken. listen_again() opens it, and returns false if another
// process has opened it meanwhile. stop_listening() closes it again, and still keeps it.
UniqueFd reserve(const Address& address);
bool listen_again(int socket);
void stop_listening(int socket);
Address local_address(int socket);
Address peer_address(int socket);

// Begins a connection. The socket becomes writable when the attempt ends; connect_error() then
// returns the result. `from` is the local address, with any port. If the attempt cannot even begin,
// returns empty and sets errno.
UniqueFd begin_connect(const Address& to, const Address* from, const SocketOptions& options);
int connect_error(int socket);  // 0: connected
bool is_connecting(int socket);
// Returns true if `error` shows that a connection attempt has reached no system that could answer.
bool is_no_answer(int error);
// Returns true if the other side is gone and has left no unread byte.
bool is_dead(int socket);
// Accepts a pending connection. Returns empty if there is none now.
UniqueFd accept_one(int listener);
// Returns true if sent data has remained unacknowledged for this time in spite of retransmissions.
// Then the peer's system, or the path to it, is gone. A peer whose process is busy or stopped still
// acknowledges, even with a closed window.
bool is_silent(int socket, int silence_ms);
// As is_silent(), for a connection on which nothing is in transit: returns true if the system has
// sent keepalive probes and has had no answer for this time. The first probe is sent after a
// second.
bool is_unheard(int socket, int silence_ms);
// A live system sends something at least once a second. A peer that has been unheard for this time
// is checked.
inline constexpr int kUnheardMs = 1200;
void apply(int socket, const SocketOptions& options, bool loopback);
// Makes the system keep probing a silent peer, and leaves the decision to is_silent(). By itself
// the system would end the connection after two unanswered probes, which may just have been lost.
void keep_though_silent(int socket);

}  // namespace unisono::tcp
