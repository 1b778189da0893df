// One TLS session of OpenSSL on a socket: its state, and what OpenSSL calls of it (tls_session.cc).
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/secret.h"
#include "transport/tcp/certificates.h"
#include "transport/tcp/openssl.h"

namespace unisono::tcp {

struct TlsSession {
  enum class State : std::uint8_t { going_on, done, failed };

  static constexpr std::size_t kRecordPlain = std::size_t{16} << 10;
  static constexpr std::size_t kRecordHeader = 5;
  static constexpr std::size_t kMostRecord = kRecordPlain + 256 + kRecordHeader;
  // What is read, and encrypted before the kernel gets it, at once: small enough to stay in the
  // cache.
  static constexpr std::size_t kReadAhead = 4 * kMostRecord;
  static constexpr std::size_t kAtOnce = 4 * kRecordPlain;

  const OpenSsl& api = OpenSsl::get();
  int socket = -1;
  Digest key;
  bool listens = false;
  std::shared_ptr<const Certificates> certificates;
  SSL_CTX* context = nullptr;  // of its own, without certificates
  SSL* ssl = nullptr;
  bool agreed = false;      // OpenSSL is done
  bool has_proved = false;  // to the other side, that this one has the key
  Digest theirs = {};       // its proof, as far as it has come
  std::size_t heard = 0;
  std::string problem;
  bool ended = false;  // the other side sends nothing more
  int error = 0;       // of the socket
  std::vector<std::byte> in = std::vector<std::byte>(kReadAhead);
  std::size_t in_begin = 0;
  std::size_t in_end = 0;
  std::size_t open = 0;  // of the record that OpenSSL has begun to take
  // A handshake fits as well.
  std::vector<std::byte> out = std::vector<std::byte>(kAtOnce + 4 * kMostRecord);
  std::size_t out_begin = 0;
  std::size_t out_end = 0;
  std::uint64_t records = 0;  // sent with the present key; counted high
  std::uint64_t most_records = 0;

  TlsSession(int fd, const Digest& secret, bool is_listener,
             std::shared_ptr<const Certificates> shown, std::uint64_t records_of_a_key)
      : socket(fd),
        key(secret),
        listens(is_listener),
        certificates(std::move(shown)),
        most_records(records_of_a_key) {}
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession() {
    if (ssl != nullptr) {
      api.ssl_free(ssl);
    }
    if (context != nullptr) {
      api.context_free(context);
    }
    key.fill(std::byte{0});
  }

  bool begin();
  bool begin_with_key();
  bool begin_with_certificates();
  State agree() noexcept;
  State prove() noexcept;
  bool proof_of(bool listener, Digest& proof) const noexcept;
  void note_problem() noexcept;
  SSL_SESSION* make_session();
  static const BIO_METHOD* bio_method();
  static int read_bio(BIO* bio, char* to, std::size_t bytes, std::size_t* got);
  static int write_bio(BIO* bio, const char* from, std::size_t bytes, std::size_t* put);
  static long control_bio(BIO* bio, int command, long number, void* pointer);
  static int check_certificate(int is_good, X509_STORE_CTX* chain);
  static int use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** id,
                     std::size_t* id_bytes, SSL_SESSION** session);
  static int find_key(SSL* ssl, const unsigned char* id, std::size_t id_bytes,
                      SSL_SESSION** session);

  // Whole records only, so that OpenSSL never holds a part of one. 0: there is none.
  std::size_t whole_record() const {
    const std::size_t ahead = in_end - in_begin;
    if (ahead < kRecordHeader) {
      return 0;
    }
    const std::byte* header = in.data() + in_begin;
    const std::size_t body =
        std::to_integer<std::size_t>(header[3]) << 8 | std::to_integer<std::size_t>(header[4]);
    if (body + kRecordHeader > kMostRecord) {
      return ahead;  // it is none: OpenSSL will say so
    }
    return ahead >= body + kRecordHeader ? body + kRecordHeader : 0;
  }
  bool fill() noexcept {
    if (in_begin != 0) {
      std::memmove(in.data(), in.data() + in_begin, in_end - in_begin);
      in_end -= in_begin;
      in_begin = 0;
    }
    const ssize_t got = ::recv(socket, in.data() + in_end, in.size() - in_end, MSG_DONTWAIT);
    if (got > 0) {
      in_end += static_cast<std::size_t>(got);
      return true;
    }
    ended = ended || got == 0;
    error = got < 0 && errno != EAGAIN && errno != EINTR ? errno : error;
    return false;
  }
  bool push() noexcept {
    while (out_begin != out_end) {
      const ssize_t put =
          ::send(socket, out.data() + out_begin, out_end - out_begin, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put < 0) {
        error = errno != EAGAIN && errno != EINTR && errno != ENOBUFS ? errno : error;
        return false;
      }
      out_begin += static_cast<std::size_t>(put);
    }
    out_begin = 0;
    out_end = 0;
    return true;
  }
  // The other side hears of it in front of what comes next. REQUIRES: nothing waits in `out`.
  bool renew_key() noexcept {
    records = 0;
    return api.key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && api.do_handshake(ssl) == 1;
  }
};

}  // namespace unisono::tcp
