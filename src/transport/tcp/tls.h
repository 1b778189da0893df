// TLS 1.3 over a connected socket whose two sides have proved to each other that they are of one
// job. Without certificates both take a key from the job's token and from that handshake
// (an external PSK, RFC 8446 section 2.2, with a fresh Diffie-Hellman exchange), so that nobody
// between them can take part in one and not in the other. Where both show certificates as well,
// these make the session, and each side proves in it that it has that key.
//
// OpenSSL's libssl is loaded when the first session is made: programs that do not encrypt do not
// need it.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/secret.h"
#include "transport/tcp/tls_state.h"

namespace unisono::tcp {

class Certificates;
struct TlsSession;

class Tls {
 public:
  // AES-GCM keeps its promises for 2^24.5 long records of one key (RFC 8446, section 5.5).
  static constexpr std::uint64_t kRecordsOfAKey = std::uint64_t{1} << 23;

  // The socket must outlive it. `certificates`: both sides show one; nullptr: neither does. After
  // `records_of_a_key` what is sent is encrypted with a new one. Throws resource; where
  // why_no_tls() says so, always.
  Tls(int socket, const Digest& key, bool listens,
      std::shared_ptr<const Certificates> certificates = nullptr,
      std::uint64_t records_of_a_key = kRecordsOfAKey);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();

  using State = TlsState;
  // Goes on with what can go on; never blocks.
  State shake() noexcept;
  // After `failed`, in words about the other side: "its certificate (...) is not trusted: ...".
  std::string problem() const;

  // As the calls of the same name on a socket that does not block: bytes, 0 at the end, or -1 and
  // errno, which is EPROTO where the other side broke the protocol or something was forged.
  // What send() takes is encrypted, and may wait here for the kernel: see push().
  ssize_t send(std::span<const iovec> parts) noexcept;
  ssize_t receive(std::span<const iovec> parts) noexcept;
  // Gives the kernel what waits. False: it does not take all now.
  bool push() noexcept;
  bool has_unsent() const noexcept;
  // The kernel has given bytes that nobody has read.
  bool has_unread() const noexcept;

 private:
  std::unique_ptr<TlsSession> session_;
};

// Why there can be no TLS here; empty: there can.
std::string why_no_tls();

}  // namespace unisono::tcp
