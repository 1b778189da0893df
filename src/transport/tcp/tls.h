// TLS 1.3 over a connected socket whose two sides have proved to each other that they belong to one
// job. Without certificates, both derive a key from the job's token and from that handshake (an
// external PSK, RFC 8446 section 2.2, with a fresh Diffie-Hellman exchange), so that nobody in
// between can take part in one and not in the other. If both show certificates as well, the
// certificates authenticate the session, and each side proves in it that it has that key.
//
// OpenSSL's libssl is loaded when the first session is made; programs that do not encrypt do not
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
  // AES-GCM is safe for 2^24.5 long records with one key (RFC 8446, section 5.5).
  static constexpr std::uint64_t kRecordsOfAKey = std::uint64_t{1} << 23;

  // The socket must outlive it. `certificates`: both sides show one; nullptr: neither does. After
  // `records_of_a_key` sent data is encrypted with a new key. Throws resource; always if
  // why_no_tls() returns a reason.
  Tls(int socket, const Digest& key, bool listens,
      std::shared_ptr<const Certificates> certificates = nullptr,
      std::uint64_t records_of_a_key = kRecordsOfAKey);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();

  using State = TlsState;
  // Continues the handshake; never blocks.
  State shake() noexcept;
  // After `failed`: the problem in words about the other side: "its certificate (...) is not
  // trusted: ...".
  std::string problem() const;

  // Like the system calls on a non-blocking socket: return bytes, 0 at the end, or -1 and errno,
  // which is EPROTO if the other side broke the protocol or data was forged. Data that send() takes
  // is encrypted, and may wait here for the kernel: see push().
  ssize_t send(std::span<const iovec> parts) noexcept;
  ssize_t receive(std::span<const iovec> parts) noexcept;
  // Hands pending data to the kernel. Returns false if the kernel does not take all of it now.
  bool push() noexcept;
  bool has_unsent() const noexcept;
  // The kernel has delivered bytes that have not been read.
  bool has_unread() const noexcept;

 private:
  std::unique_ptr<TlsSession> session_;
};

// Returns why TLS is unavailable; empty: it is available.
std::string why_no_tls();

}  // namespace unisono::tcp
