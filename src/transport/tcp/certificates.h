// By which certificate a host says who it is, and whom it believes that, where TLS goes by
// certificates and not by the job's token alone.
#pragma once

#include <memory>
#include <string>

#include "transport/tcp/openssl.h"

namespace unisono::tcp {

class Certificates {
 public:
  // `identity`: a PEM file with the certificate of this host, those of its signers, and its
  // private key. `trusted`: a folder of PEM files with certificates of hosts, or of their
  // signers: the other side's must be one of them, or signed by one. Read once, here. Throws
  // config.
  Certificates(const std::string& identity, const std::string& trusted);
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;
  ~Certificates();

  // For both sides of a connection. Any threads.
  SSL_CTX* context() const noexcept { return context_; }
  const std::string& trusted() const noexcept { return trusted_; }

 private:
  void load_identity(const std::string& file);
  void load_trusted();

  const OpenSsl& api_ = OpenSsl::get();
  std::string trusted_;
  SSL_CTX* context_ = nullptr;
};

// What UNISONO_TLS_IDENTITY and UNISONO_TLS_TRUSTED say; nullptr: neither is set. Throws config.
std::shared_ptr<const Certificates> certificates_from_environment();

// What all sessions have, whatever proves the other side. False: OpenSSL has not.
bool set_up(const OpenSsl& api, SSL_CTX* context);

}  // namespace unisono::tcp
