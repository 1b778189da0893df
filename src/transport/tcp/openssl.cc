#include "transport/tcp/openssl.h"

#include <dlfcn.h>

namespace unisono::tcp {
namespace {

constexpr const char* kLibrary = "libssl.so.3";

OpenSsl load() {
  OpenSsl api;
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.problem = std::string(kLibrary) + " cannot be loaded";
    return api;
  }
  const auto find = [&](auto& function, const char* name) {
    void* const found = ::dlsym(library, name);
    if (found == nullptr && api.problem.empty()) {
      api.problem = std::string(kLibrary) + " has no " + name;
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(api.method, "TLS_method");
  find(api.context_new, "SSL_CTX_new");
  find(api.context_free, "SSL_CTX_free");
  find(api.context_ctrl, "SSL_CTX_ctrl");
  find(api.set_options, "SSL_CTX_set_options");
  find(api.set_ciphersuites, "SSL_CTX_set_ciphersuites");
  find(api.set_num_tickets, "SSL_CTX_set_num_tickets");
  find(api.set_verify, "SSL_CTX_set_verify");
  find(api.set_psk_find, "SSL_CTX_set_psk_find_session_callback");
  find(api.set_psk_use, "SSL_CTX_set_psk_use_session_callback");
  find(api.ssl_new, "SSL_new");
  find(api.ssl_free, "SSL_free");
  find(api.set_bio, "SSL_set_bio");
  find(api.set_connect_state, "SSL_set_connect_state");
  find(api.set_accept_state, "SSL_set_accept_state");
  find(api.set_ex_data, "SSL_set_ex_data");
  find(api.get_ex_data, "SSL_get_ex_data");
  find(api.do_handshake, "SSL_do_handshake");
  find(api.key_update, "SSL_key_update");
  find(api.ssl_ctrl, "SSL_ctrl");
  find(api.session_reused, "SSL_session_reused");
  find(api.read, "SSL_read_ex");
  find(api.write, "SSL_write_ex");
  find(api.get_error, "SSL_get_error");
  find(api.pending, "SSL_pending");
  find(api.session_new, "SSL_SESSION_new");
  find(api.session_set_key, "SSL_SESSION_set1_master_key");
  find(api.session_set_cipher, "SSL_SESSION_set_cipher");
  find(api.session_set_version, "SSL_SESSION_set_protocol_version");
  find(api.cipher_find, "SSL_CIPHER_find");
  find(api.bio_meth_new, "BIO_meth_new");
  find(api.bio_meth_set_read, "BIO_meth_set_read_ex");
  find(api.bio_meth_set_write, "BIO_meth_set_write_ex");
  find(api.bio_meth_set_ctrl, "BIO_meth_set_ctrl");
  find(api.bio_new, "BIO_new");
  find(api.bio_set_data, "BIO_set_data");
  find(api.bio_get_data, "BIO_get_data");
  find(api.bio_set_init, "BIO_set_init");
  find(api.bio_set_flags, "BIO_set_flags");
  find(api.bio_clear_flags, "BIO_clear_flags");
  find(api.clear_errors, "ERR_clear_error");
  find(api.set_session_verify, "SSL_set_verify");
  find(api.use_certificates, "SSL_CTX_use_certificate_chain_file");
  find(api.use_private_key, "SSL_CTX_use_PrivateKey_file");
  find(api.check_private_key, "SSL_CTX_check_private_key");
  find(api.load_trusted, "SSL_CTX_load_verify_file");
  find(api.verify_parameters, "SSL_CTX_get0_param");
  find(api.export_key, "SSL_export_keying_material");
  find(api.verified_session, "SSL_get_ex_data_X509_STORE_CTX_idx");
  find(api.set_verify_flags, "X509_VERIFY_PARAM_set_flags");
  find(api.verification_data, "X509_STORE_CTX_get_ex_data");
  find(api.verification_error, "X509_STORE_CTX_get_error");
  find(api.verified_certificate, "X509_STORE_CTX_get_current_cert");
  find(api.subject_of, "X509_get_subject_name");
  find(api.name_text, "X509_NAME_oneline");
  find(api.verification_text, "X509_verify_cert_error_string");
  find(api.peek_error, "ERR_peek_error");
  return api;
}

}  // namespace

const OpenSsl& OpenSsl::get() {
  static const OpenSsl api = load();
  return api;
}

}  // namespace unisono::tcp
