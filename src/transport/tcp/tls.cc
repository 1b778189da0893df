#include "transport/tcp/tls.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "transport/tcp/openssl.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr std::size_t kRecordPlain = std::size_t{16} << 10;
constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMostRecord = kRecordPlain + 256 + kRecordHeader;
// What is read, and encrypted before the kernel gets it, at once: small enough to stay in the
// cache.
constexpr std::size_t kReadAhead = 4 * kMostRecord;
constexpr std::size_t kAtOnce = 4 * kRecordPlain;

// TLS_AES_128_GCM_SHA256: the hash is that of the key, and the CPU has the cipher.
constexpr unsigned char kCipher[] = {0x13, 0x01};
constexpr const char* kCipherName = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kKeyName[] = {'u', 'n', 'i', 's', 'o', 'n', 'o'};

}  // namespace

struct Tls::Session {
  const OpenSsl& api = OpenSsl::get();
  int socket = -1;
  Digest key;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
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

  Session(int fd, const Digest& secret, std::uint64_t records_of_a_key)
      : socket(fd), key(secret), most_records(records_of_a_key) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (ssl != nullptr) {
      api.ssl_free(ssl);
    }
    if (context != nullptr) {
      api.context_free(context);
    }
    key.fill(std::byte{0});
  }

  bool begin(bool listens);
  SSL_SESSION* make_session();
  static const BIO_METHOD* bio_method();
  static int read_bio(BIO* bio, char* to, std::size_t bytes, std::size_t* got);
  static int write_bio(BIO* bio, const char* from, std::size_t bytes, std::size_t* put);
  static long control_bio(BIO* bio, int command, long number, void* pointer);
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

namespace {

// The session that a BIO or an SSL belongs to.
template <typename Session>
Session& session_of(void* data) {
  return *static_cast<Session*>(data);
}

}  // namespace

int Tls::Session::read_bio(BIO* bio, char* to, std::size_t bytes, std::size_t* got) {
  const OpenSsl& api = OpenSsl::get();
  auto& self = session_of<Session>(api.bio_get_data(bio));
  api.bio_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  while (self.open == 0) {
    self.open = self.whole_record();
    if (self.open == 0 && !self.fill()) {
      if (!self.ended && self.error == 0) {
        api.bio_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
      }
      return 0;
    }
  }
  const std::size_t part = std::min(bytes, self.open);
  std::memcpy(to, self.in.data() + self.in_begin, part);
  self.in_begin += part;
  self.open -= part;
  *got = part;
  return 1;
}

int Tls::Session::write_bio(BIO* bio, const char* from, std::size_t bytes, std::size_t* put) {
  const OpenSsl& api = OpenSsl::get();
  auto& self = session_of<Session>(api.bio_get_data(bio));
  api.bio_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  if (bytes > self.out.size() - self.out_end) {
    api.bio_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
    return 0;
  }
  std::memcpy(self.out.data() + self.out_end, from, bytes);
  self.out_end += bytes;
  *put = bytes;
  return 1;
}

long Tls::Session::control_bio(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// The key as OpenSSL wants it: the session of a connection that was never made.
SSL_SESSION* Tls::Session::make_session() {
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

int Tls::Session::use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_bytes,
                          SSL_SESSION** session) {
  auto& self = session_of<Session>(OpenSsl::get().get_ex_data(ssl, 0));
  *session = self.make_session();
  *id = kKeyName;
  *id_bytes = sizeof(kKeyName);
  return *session != nullptr ? 1 : 0;
}

int Tls::Session::find_key(SSL* ssl, const unsigned char* id, std::size_t id_bytes,
                           SSL_SESSION** session) {
  auto& self = session_of<Session>(OpenSsl::get().get_ex_data(ssl, 0));
  const bool ours = id_bytes == sizeof(kKeyName) && std::memcmp(id, kKeyName, id_bytes) == 0;
  *session = ours ? self.make_session() : nullptr;
  return 1;
}

bool Tls::Session::begin(bool listens) {
  context = api.context_new(api.method());
  if (context == nullptr ||
      api.context_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) != 1 ||
      api.set_ciphersuites(context, kCipherName) != 1 || api.set_num_tickets(context, 0) != 1) {
    return false;
  }
  api.set_options(context, SSL_OP_NO_RENEGOTIATION);
  // Without a certificate to trust, none is good: only the key is.
  api.set_verify(context, listens ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  api.set_psk_use(context, use_key);
  api.set_psk_find(context, find_key);
  ssl = api.ssl_new(context);
  const BIO_METHOD* method = bio_method();
  BIO* bio = ssl != nullptr && method != nullptr ? api.bio_new(method) : nullptr;
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

const BIO_METHOD* Tls::Session::bio_method() {
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

Tls::Tls(int socket, const Digest& key, bool listens, std::uint64_t records_of_a_key) {
  session_ = std::make_unique<Session>(socket, key, records_of_a_key);
  if (!why_no_tls().empty() || !session_->begin(listens)) {
    throw Error(ErrorCode::resource, "OpenSSL gave no TLS session for a connection");
  }
}

Tls::~Tls() = default;

Tls::State Tls::shake() noexcept {
  Session& self = *session_;
  self.api.clear_errors();
  const int done = self.api.do_handshake(self.ssl);
  const int why = done == 1 ? SSL_ERROR_NONE : self.api.get_error(self.ssl, done);
  const bool pushed = self.push();
  if (done == 1) {
    // Whoever has the key has shown it; another way in there must not be.
    if (self.api.session_reused(self.ssl) != 1) {
      return State::failed;
    }
    return pushed ? State::done : self.error != 0 ? State::failed : State::going_on;
  }
  const bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
  return waits && self.error == 0 && !self.ended ? State::going_on : State::failed;
}

ssize_t Tls::send(std::span<const iovec> parts) noexcept {
  Session& self = *session_;
  if (!self.push()) {
    errno = self.error != 0 ? self.error : EAGAIN;
    return -1;
  }
  self.api.clear_errors();
  if (self.records >= self.most_records && !self.renew_key()) {
    self.error = EPROTO;
    errno = EPROTO;
    return -1;
  }
  std::size_t sum = 0;
  bool goes_on = true;
  for (std::size_t i = 0; i < parts.size() && goes_on; ++i) {
    const auto* data = static_cast<const char*>(parts[i].iov_base);
    for (std::size_t done = 0; done < parts[i].iov_len && goes_on;) {
      std::size_t put = 0;
      const std::size_t bytes = std::min(parts[i].iov_len - done, kAtOnce);
      if (self.api.write(self.ssl, data + done, bytes, &put) != 1) {
        self.error = EPROTO;
        goes_on = false;
        break;
      }
      done += put;
      sum += put;
      self.records += put / kRecordPlain + 1;
      goes_on = self.out_end < kAtOnce || self.push();
    }
  }
  self.push();
  if (sum == 0 && self.error != 0) {
    errno = self.error;
    return -1;
  }
  return static_cast<ssize_t>(sum);
}

ssize_t Tls::receive(std::span<const iovec> parts) noexcept {
  Session& self = *session_;
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
        return static_cast<ssize_t>(sum);  // what is wrong shows again
      }
      if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
      }
      if (self.ended || why == SSL_ERROR_ZERO_RETURN) {
        return 0;
      }
      errno = self.error != 0 ? self.error : EPROTO;
      return -1;
    }
  }
  return static_cast<ssize_t>(sum);
}

bool Tls::push() noexcept {
  return session_->push();
}

bool Tls::has_unsent() const noexcept {
  return session_->out_begin != session_->out_end;
}

bool Tls::has_unread() const noexcept {
  return session_->api.pending(session_->ssl) > 0 || session_->open != 0 ||
         session_->whole_record() != 0;
}

std::string why_no_tls() {
  return OpenSsl::get().problem;
}

}  // namespace unisono::tcp
