// TLS 1.3 over a connected socket. Both sides have already proved in the handshake that they belong
// to the same job.
//
// Without certificates, both sides derive a key from the job's token and from that handshake, and
// use it as an external PSK (RFC 8446, section 2.2) with a fresh Diffie-Hellman exchange. The key
// binds the session to the handshake, so nobody between the two sides can take part in only the
// handshake or only the session. If both sides show certificates as well, the certificates
// authenticate the session, and each side proves within the session that it has the key.
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
  // RFC 8446, section 5.5: with one key AES-GCM is safe for 2^24.5 records of full length.
  static constexpr std::uint64_t kRecordsOfAKey = std::uint64_t{1} << 23;

  // The socket must outlive this object. With `certificates` both sides show one; with nullptr
  // neither side does. After `records_of_a_key` records, sent data is encrypted with a new key.
  // Throws resource, in particular if why_no_tls() returns a reason.
  Tls(int socket, const Digest& key, bool listens,
      std::shared_ptr<const Certificates> certificates = nullptr,
      std::uint64_t records_of_a_key = kRecordsOfAKey);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();

  using State = TlsState;
  // Continues the handshake; never blocks.
  State shake() noexcept;
  // After State::failed: returns the problem as words about the other side, such as "its
  // certificate (...) is not trusted: ...".
  std::string problem() const;

  // These behave like the system calls on a non-blocking socket. They return the number of bytes, 0
  // at the end, or -1 with errno. errno is EPROTO if the other side broke the protocol or data was
  // forged. send() encrypts the data that it accepts; the encrypted data may wait here for the
  // kernel (see push()).
  ssize_t send(std::span<const iovec> parts) noexcept;
  ssize_t receive(std::span<const iovec> parts) noexcept;
  // Hands pending data to the kernel. Returns false if the kernel does not take all of it now.
  bool push() noexcept;
  bool has_unsent() const noexcept;
  // Returns true if the kernel has delivered bytes that receive() has not returned yet.
  bool has_unread() const noexcept;

 private:
  std::unique_ptr<TlsSession> session_;
};

// Returns the reason why TLS is unavailable; empty if it is available.
std::string why_no_tls();

}  // namespace unisono::tcp
