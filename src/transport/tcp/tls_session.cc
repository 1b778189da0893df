#include "transport/tcp/tls_session.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr unsigned char kCipher[] = {0x13, 0x01};  // that of set_up()
constexpr unsigned char kKeyName[] = {'u', 'n', 'i', 's', 'o', 'n', 'o'};

// Returns the session that a BIO or an SSL belongs to.
TlsSession& session_of(void* data) {
  return *static_cast<TlsSession*>(data);
}

}  // namespace

int TlsSession::read_bio(BIO* bio, char* to, std::size_t bytes, std::size_t* got) {
  const OpenSsl& api = OpenSsl::get();
  auto& self = session_of(api.bio_get_data(bio));
  api.bio_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  *got = self.records.take(to, bytes);
  if (*got == 0 && self.records.goes_on()) {
    api.bio_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
  }
  return *got != 0 ? 1 : 0;
}

int TlsSession::write_bio(BIO* bio, const char* from, std::size_t bytes, std::size_t* put) {
  const OpenSsl& api = OpenSsl::get();
  auto& self = session_of(api.bio_get_data(bio));
  api.bio_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  if (!self.records.put(from, bytes)) {
    api.bio_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
    return 0;
  }
  *put = bytes;
  return 1;
}

long TlsSession::control_bio(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Returns the key in the form that OpenSSL requires: as a session to resume, although no such
// connection existed.
SSL_SESSION* TlsSession::make_session() {
  SSL_SESSION* made = api.session_new();
  const SSL_CIPHER* cipher = api.cipher_find(ssl, kCipher);
  if (made == nullptr || cipher == nullptr ||
      api.session_set_key(made, reinterpret_cast<const unsigned char*>(key.data()), key.size()) !=
          1 ||
      api.session_set_cipher(made, cipher) != 1 ||
      api.session_set_version(made, TLS1_3_VERSION) != 1) {
    return nullptr;
  }
  return made;
}

int TlsSession::use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_bytes,
                        SSL_SESSION** session) {
  auto& self = session_of(OpenSsl::get().get_ex_data(ssl, 0));
  *session = self.make_session();
  *id = kKeyName;
  *id_bytes = sizeof(kKeyName);
  return *session != nullptr ? 1 : 0;
}

int TlsSession::find_key(SSL* ssl, const unsigned char* id, std::size_t id_bytes,
                         SSL_SESSION** session) {
  auto& self = session_of(OpenSsl::get().get_ex_data(ssl, 0));
  const bool ours = id_bytes == sizeof(kKeyName) && std::memcmp(id, kKeyName, id_bytes) == 0;
  *session = ours ? self.make_session() : nullptr;
  return 1;
}

bool TlsSession::begin_with_key() {
  context = api.context_new(api.method());
  if (!set_up(api, context)) {
    return false;
  }
  // Without trusted certificates no certificate is valid; only the key authenticates.
  api.set_verify(context, listens ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  api.set_psk_use(context, use_key);
  api.set_psk_find(context, find_key);
  ssl = api.ssl_new(context);
  return ssl != nullptr;
}

bool TlsSession::begin_with_certificates() {
  ssl = api.ssl_new(certificates->context());
  if (ssl != nullptr) {
    api.set_session_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           check_certificate);
  }
  return ssl != nullptr;
}

bool TlsSession::begin() {
  if (!(certificates != nullptr ? begin_with_certificates() : begin_with_key())) {
    return false;
  }
  const BIO_METHOD* method = bio_method();
  BIO* bio = method != nullptr ? api.bio_new(method) : nullptr;
  if (bio == nullptr) {
    return false;
  }
  api.bio_set_data(bio, this);
  api.bio_set_init(bio, 1);
  api.set_bio(ssl, bio, bio);
  api.set_ex_data(ssl, 0, this);
  (listens ? api.set_accept_state : api.set_connect_state)(ssl);
  return true;
}

int TlsSession::check_certificate(int is_good, X509_STORE_CTX* chain) {
  const OpenSsl& api = OpenSsl::get();
  auto* ssl = static_cast<SSL*>(api.verification_data(chain, api.verified_session()));
  auto& self = session_of(api.get_ex_data(ssl, 0));
  if (is_good != 1 && self.problem.empty()) {
    char name[256] = "?";
    if (X509* const shown = api.verified_certificate(chain); shown != nullptr) {
      api.name_text(api.subject_of(shown), name, sizeof(name));
    }
    self.problem = std::string("its certificate (") + name +
                   ") is not trusted by the certificates in " + self.certificates->trusted() +
                   ": " + api.verification_text(api.verification_error(chain));
  }
  return is_good;
}

// OpenSSL numbers the other side's alerts (RFC 8446, section 6.2) from 1000 on.
void TlsSession::note_problem() noexcept {
  constexpr int kAlert = SSL_AD_REASON_OFFSET;
  const int reason = ERR_GET_REASON(api.peek_error());
  const bool about_certificate = (reason >= kAlert + SSL_AD_BAD_CERTIFICATE &&
                                  reason <= kAlert + SSL_AD_CERTIFICATE_UNKNOWN) ||
                                 reason == kAlert + SSL_AD_UNKNOWN_CA ||
                                 reason == kAlert + SSL_AD_CERTIFICATE_REQUIRED;
  if (problem.empty()) {
    problem = certificates != nullptr && about_certificate
                  ? "it does not trust this host's certificate (UNISONO_TLS_IDENTITY)"
                  : "the TLS handshake failed";
  }
}

// Computes a value that requires the key of the preceding handshake, and is different on each side
// and connection.
bool TlsSession::proof_of(bool listener, Digest& proof) const noexcept {
  constexpr std::string_view kLabel = "EXPERIMENTAL unisono token";
  std::array<std::byte, 33> message{};
  if (api.export_key(ssl, reinterpret_cast<unsigned char*>(message.data()), message.size() - 1,
                     kLabel.data(), kLabel.size(), nullptr, 0, 0) != 1) {
    return false;
  }
  message.back() = std::byte(listener ? 'L' : 'D');
  try {
    proof = hmac_sha256({reinterpret_cast<const char*>(key.data()), key.size()}, message);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

// Proves that this side has the key of the preceding handshake. A certificate is not enough,
// because it identifies a host and not a job: a host that relays other hosts' handshake has a
// certificate, but not the key.
TlsSession::State TlsSession::prove() noexcept {
  Digest proof{};
  std::size_t bytes = 0;
  if (!has_proved) {
    if (!proof_of(listens, proof) || api.write(ssl, proof.data(), proof.size(), &bytes) != 1) {
      return State::failed;
    }
    has_proved = true;
  }
  const bool pushed = records.push();
  while (heard < theirs.size()) {
    const int read = api.read(ssl, theirs.data() + heard, theirs.size() - heard, &bytes);
    if (read != 1) {
      const bool waits = api.get_error(ssl, read) == SSL_ERROR_WANT_READ;
      return waits && records.goes_on() ? State::going_on : State::failed;
    }
    heard += bytes;
  }
  if (!proof_of(!listens, proof) || !equal(proof, theirs)) {
    return State::failed;
  }
  return pushed ? State::done : records.error() != 0 ? State::failed : State::going_on;
}

TlsSession::State TlsSession::agree() noexcept {
  const int done = api.do_handshake(ssl);
  const int why = done == 1 ? SSL_ERROR_NONE : api.get_error(ssl, done);
  const bool pushed = records.push();
  if (done != 1) {
    const bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    return waits && records.goes_on() ? State::going_on : State::failed;
  }
  if (certificates != nullptr) {
    agreed = true;
    return prove();
  }
  // A session that was resumed proves the key; no other session may be accepted.
  if (api.session_reused(ssl) != 1) {
    return State::failed;
  }
  return pushed ? State::done : records.error() != 0 ? State::failed : State::going_on;
}

const BIO_METHOD* TlsSession::bio_method() {
  static const BIO_METHOD* const kMethod = [] {
    const OpenSsl& loaded = OpenSsl::get();
    BIO_METHOD* made = loaded.bio_meth_new(BIO_TYPE_SOURCE_SINK | 127, "unisono");
    if (made != nullptr) {
      loaded.bio_meth_set_read(made, read_bio);
      loaded.bio_meth_set_write(made, write_bio);
      loaded.bio_meth_set_ctrl(made, control_bio);
    }
    return made;
  }();
  return kMethod;
}

}  // namespace unisono::tcp
