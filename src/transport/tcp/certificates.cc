#include "transport/tcp/certificates.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr const char* kIdentity = "UNISONO_TLS_IDENTITY";
constexpr const char* kTrusted = "UNISONO_TLS_TRUSTED";
// TLS_AES_128_GCM_SHA256 uses the same hash as the key, and CPUs accelerate its cipher.
constexpr const char* kCipherName = "TLS_AES_128_GCM_SHA256";

[[noreturn]] void refuse(const char* variable, const std::string& value, const std::string& what,
                         const std::string& next) {
  throw Error(ErrorCode::config, std::string(variable) + "=" + value + ": " + what + "\n" + next);
}

}  // namespace

bool set_up(const OpenSsl& api, SSL_CTX* context) {
  if (context == nullptr ||
      api.context_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) != 1 ||
      api.set_ciphersuites(context, kCipherName) != 1 || api.set_num_tickets(context, 0) != 1) {
    return false;
  }
  api.set_options(context, SSL_OP_NO_RENEGOTIATION);
  return true;
}

Certificates::Certificates(const std::string& identity, const std::string& trusted)
    : trusted_(trusted) {
  if (const std::string& why = api_.problem; !why.empty()) {
    refuse(kIdentity, identity, why, "install OpenSSL 3 (Debian: libssl3)");
  }
  context_ = api_.context_new(api_.method());
  try {
    if (!set_up(api_, context_)) {
      throw Error(ErrorCode::resource, "OpenSSL gave no TLS context");
    }
    load_identity(identity);
    load_trusted();
  } catch (...) {
    api_.context_free(context_);
    throw;
  }
}

Certificates::~Certificates() {
  api_.context_free(context_);
}

void Certificates::load_identity(const std::string& file) {
  const bool loaded = api_.use_certificates(context_, file.c_str()) == 1 &&
                      api_.use_private_key(context_, file.c_str(), SSL_FILETYPE_PEM) == 1;
  if (!loaded) {
    refuse(kIdentity, file, "there is no certificate with its private key, in PEM",
           "put both into one file that this user can read");
  }
  if (api_.check_private_key(context_) != 1) {
    refuse(kIdentity, file, "the private key is not that of the certificate",
           "put a matching pair into the file");
  }
}

void Certificates::load_trusted() {
  std::error_code failed;
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entries(trusted_, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    const auto extension = entries->path().extension();
    if (extension == ".pem" || extension == ".crt") {
      files.push_back(entries->path());
    }
  }
  if (failed) {
    refuse(kTrusted, trusted_, failed.message(), "name a folder of certificates, in PEM files");
  }
  if (files.empty()) {
    refuse(kTrusted, trusted_, "it has no *.pem or *.crt file, so no host is trusted",
           "put the certificates of all hosts there, or the certificate of their signer");
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    if (api_.load_trusted(context_, file.c_str()) != 1) {
      refuse(kTrusted, trusted_, "there is no certificate in " + file.filename().string(),
             "repair the file, or remove it");
    }
  }
  // A host's own certificate is enough; it need not be signed.
  api_.set_verify_flags(api_.verify_parameters(context_), X509_V_FLAG_PARTIAL_CHAIN);
}

std::shared_ptr<const Certificates> certificates_from_environment() {
  const std::string identity = read_env(kIdentity).value_or("");
  const std::string trusted = read_env(kTrusted).value_or("");
  if (identity.empty() && trusted.empty()) {
    return nullptr;
  }
  if (identity.empty() || trusted.empty()) {
    const std::string set = identity.empty() ? kTrusted : kIdentity;
    const std::string missing = identity.empty() ? kIdentity : kTrusted;
    throw Error(ErrorCode::config,
                set + " is set, but " + missing +
                    " is not\nset both: each host shows its certificate and checks the peer's");
  }
  if (!read_flag("UNISONO_TLS")) {
    throw Error(ErrorCode::config, std::string(kIdentity) +
                                       " is set, but UNISONO_TLS is not 1, so nothing is encrypted"
                                       "\nset UNISONO_TLS=1 on all ranks");
  }
  return std::make_shared<Certificates>(identity, trusted);
}

}  // namespace unisono::tcp
