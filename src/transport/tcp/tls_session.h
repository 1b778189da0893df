// One TLS session of OpenSSL on a socket: its state, and the callbacks for OpenSSL
// (tls_session.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/secret.h"
#include "transport/tcp/certificates.h"
#include "transport/tcp/openssl.h"
#include "transport/tcp/tls_records.h"
#include "transport/tcp/tls_state.h"

namespace unisono::tcp {

struct TlsSession {
  using State = TlsState;

  const OpenSsl& api = OpenSsl::get();
  TlsRecords records;
  Digest key;
  bool listens = false;
  std::shared_ptr<const Certificates> certificates;
  SSL_CTX* context = nullptr;  // of its own, without certificates
  SSL* ssl = nullptr;
  bool agreed = false;      // OpenSSL has finished its handshake
  bool has_proved = false;  // to the other side, that this one has the key
  Digest theirs = {};       // its proof, as far as received
  std::size_t heard = 0;
  std::string problem;
  std::uint64_t sent_records = 0;  // with the present key; an upper bound
  std::uint64_t most_records = 0;

  TlsSession(int socket, const Digest& secret, bool is_listener,
             std::shared_ptr<const Certificates> shown, std::uint64_t records_of_a_key)
      : records(socket),
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

  // Renews the key for sent data, and informs the other side before the next record. REQUIRES:
  // nothing is pending.
  bool renew_key() noexcept {
    sent_records = 0;
    return api.key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && api.do_handshake(ssl) == 1;
  }
};

}  // namespace unisono::tcp
