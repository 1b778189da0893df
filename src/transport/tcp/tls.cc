#include "transport/tcp/tls.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/tcp/tls_session.h"
#include "unisono/error.hpp"

namespace unisono::tcp {

Tls::Tls(int socket, const Digest& key, bool listens,
         std::shared_ptr<const Certificates> certificates, std::uint64_t records_of_a_key) {
  session_ =
      std::make_unique<TlsSession>(socket, key, listens, std::move(certificates), records_of_a_key);
  if (!why_no_tls().empty() || !session_->begin()) {
    throw Error(ErrorCode::resource, "OpenSSL gave no TLS session for a connection");
  }
}

Tls::~Tls() = default;

Tls::State Tls::shake() noexcept {
  TlsSession& self = *session_;
  self.api.clear_errors();
  const State state = self.agreed ? self.prove() : self.agree();
  if (state == State::failed) {
    self.note_problem();
  }
  return state;
}

std::string Tls::problem() const {
  return session_->problem;
}

ssize_t Tls::send(std::span<const iovec> parts) noexcept {
  TlsSession& self = *session_;
  if (!self.records.push()) {
    errno = self.records.error() != 0 ? self.records.error() : EAGAIN;
    return -1;
  }
  self.api.clear_errors();
  if (self.sent_records >= self.most_records && !self.renew_key()) {
    self.records.set_error(EPROTO);
    errno = EPROTO;
    return -1;
  }
  std::size_t sum = 0;
  bool goes_on = true;
  for (std::size_t i = 0; i < parts.size() && goes_on; ++i) {
    const auto* data = static_cast<const char*>(parts[i].iov_base);
    for (std::size_t done = 0; done < parts[i].iov_len && goes_on;) {
      std::size_t put = 0;
      const std::size_t bytes = std::min(parts[i].iov_len - done, TlsRecords::kAtOnce);
      if (self.api.write(self.ssl, data + done, bytes, &put) != 1) {
        self.records.set_error(EPROTO);
        goes_on = false;
        break;
      }
      done += put;
      sum += put;
      self.sent_records += put / TlsRecords::kPlain + 1;
      goes_on = !self.records.is_full() || self.records.push();
    }
  }
  self.records.push();
  if (sum == 0 && self.records.error() != 0) {
    errno = self.records.error();
    return -1;
  }
  return static_cast<ssize_t>(sum);
}

ssize_t Tls::receive(std::span<const iovec> parts) noexcept {
  TlsSession& self = *session_;
  self.api.clear_errors();
  std::size_t sum = 0;
  for (const iovec& part : parts) {
    for (std::size_t done = 0; done < part.iov_len;) {
      std::size_t got = 0;
      const int read = self.api.read(self.ssl, static_cast<char*>(part.iov_base) + done,
                                     part.iov_len - done, &got);
      if (read == 1) {
        done += got;
        sum += got;
        continue;
      }
      const int why = self.api.get_error(self.ssl, read);
      if (sum != 0) {
        return static_cast<ssize_t>(sum);  // the error shows again
      }
      if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
      }
      if (self.records.ended() || why == SSL_ERROR_ZERO_RETURN) {
        return 0;
      }
      errno = self.records.error() != 0 ? self.records.error() : EPROTO;
      return -1;
    }
  }
  return static_cast<ssize_t>(sum);
}

bool Tls::push() noexcept {
  return session_->records.push();
}

bool Tls::has_unsent() const noexcept {
  return session_->records.has_unsent();
}

bool Tls::has_unread() const noexcept {
  return session_->api.pending(session_->ssl) > 0 || session_->records.has_unread();
}

std::string why_no_tls() {
  return OpenSsl::get().problem;
}

}  // namespace unisono::tcp
