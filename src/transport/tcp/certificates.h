// This host's certificate and the certificates that it trusts, for mutual TLS in addition to the
// job's token.
#pragma once

#include <memory>
#include <string>

#include "transport/tcp/openssl.h"

namespace unisono::tcp {

class Certificates {
 public:
  // `identity` is a PEM file with this host's certificate, its signers' certificates, and its
  // private key. `trusted` is a folder of PEM files with certificates of hosts or of signers. The
  // other side's certificate must be in this folder, or be signed by a certificate in this folder.
  // The constructor reads both paths once. Throws config.
  Certificates(const std::string& identity, const std::string& trusted);
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;
  ~Certificates();

  // For both sides of a connection. Any thread.
  SSL_CTX* context() const noexcept { return context_; }
  const std::string& trusted() const noexcept { return trusted_; }

 private:
  void load_identity(const std::string& file);
  void load_trusted();

  const OpenSsl& api_ = OpenSsl::get();
  std::string trusted_;
  SSL_CTX* context_ = nullptr;
};

// Reads UNISONO_TLS_IDENTITY and UNISONO_TLS_TRUSTED. Returns nullptr if neither is set. Throws
// config.
std::shared_ptr<const Certificates> certificates_from_environment();

// Configures a context for all sessions, with certificates or without. Returns false if OpenSSL
// refuses.
bool set_up(const OpenSsl& api, SSL_CTX* context);

}  // namespace unisono::tcp
