// The part of OpenSSL's libssl that unisono uses, loaded on demand.
//
// The library is loaded at run time and not linked, because most jobs do not encrypt, and a program
// that links unisono should not need libssl then. A plug-in would have to be found, installed and
// kept at the same version. In contrast, libssl's names are stable within a major version, and the
// compiler checks the types here against its headers.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <string>

namespace unisono::tcp {

struct OpenSsl {
  decltype(&::TLS_method) method = nullptr;
  decltype(&::SSL_CTX_new) context_new = nullptr;
  decltype(&::SSL_CTX_free) context_free = nullptr;
  decltype(&::SSL_CTX_ctrl) context_ctrl = nullptr;
  decltype(&::SSL_CTX_set_options) set_options = nullptr;
  decltype(&::SSL_CTX_set_ciphersuites) set_ciphersuites = nullptr;
  decltype(&::SSL_CTX_set_num_tickets) set_num_tickets = nullptr;
  decltype(&::SSL_CTX_set_verify) set_verify = nullptr;
  decltype(&::SSL_CTX_set_psk_find_session_callback) set_psk_find = nullptr;
  decltype(&::SSL_CTX_set_psk_use_session_callback) set_psk_use = nullptr;
  decltype(&::SSL_new) ssl_new = nullptr;
  decltype(&::SSL_free) ssl_free = nullptr;
  decltype(&::SSL_set_bio) set_bio = nullptr;
  decltype(&::SSL_set_connect_state) set_connect_state = nullptr;
  decltype(&::SSL_set_accept_state) set_accept_state = nullptr;
  decltype(&::SSL_set_ex_data) set_ex_data = nullptr;
  decltype(&::SSL_get_ex_data) get_ex_data = nullptr;
  decltype(&::SSL_do_handshake) do_handshake = nullptr;
  decltype(&::SSL_key_update) key_update = nullptr;
  decltype(&::SSL_ctrl) ssl_ctrl = nullptr;
  decltype(&::SSL_session_reused) session_reused = nullptr;
  decltype(&::SSL_read_ex) read = nullptr;
  decltype(&::SSL_write_ex) write = nullptr;
  decltype(&::SSL_get_error) get_error = nullptr;
  decltype(&::SSL_pending) pending = nullptr;
  decltype(&::SSL_SESSION_new) session_new = nullptr;
  decltype(&::SSL_SESSION_set1_master_key) session_set_key = nullptr;
  decltype(&::SSL_SESSION_set_cipher) session_set_cipher = nullptr;
  decltype(&::SSL_SESSION_set_protocol_version) session_set_version = nullptr;
  decltype(&::SSL_CIPHER_find) cipher_find = nullptr;
  decltype(&::SSL_set_verify) set_session_verify = nullptr;
  decltype(&::SSL_CTX_use_certificate_chain_file) use_certificates = nullptr;
  decltype(&::SSL_CTX_use_PrivateKey_file) use_private_key = nullptr;
  decltype(&::SSL_CTX_check_private_key) check_private_key = nullptr;
  decltype(&::SSL_CTX_load_verify_file) load_trusted = nullptr;
  decltype(&::SSL_CTX_get0_param) verify_parameters = nullptr;
  decltype(&::SSL_export_keying_material) export_key = nullptr;
  decltype(&::SSL_get_ex_data_X509_STORE_CTX_idx) verified_session = nullptr;
  // Loaded from the libcrypto that this libssl uses, which may differ from the one that unisono
  // links.
  decltype(&::BIO_meth_new) bio_meth_new = nullptr;
  decltype(&::BIO_meth_set_read_ex) bio_meth_set_read = nullptr;
  decltype(&::BIO_meth_set_write_ex) bio_meth_set_write = nullptr;
  decltype(&::BIO_meth_set_ctrl) bio_meth_set_ctrl = nullptr;
  decltype(&::BIO_new) bio_new = nullptr;
  decltype(&::BIO_set_data) bio_set_data = nullptr;
  decltype(&::BIO_get_data) bio_get_data = nullptr;
  decltype(&::BIO_set_init) bio_set_init = nullptr;
  decltype(&::BIO_set_flags) bio_set_flags = nullptr;
  decltype(&::BIO_clear_flags) bio_clear_flags = nullptr;
  decltype(&::ERR_clear_error) clear_errors = nullptr;
  decltype(&::X509_VERIFY_PARAM_set_flags) set_verify_flags = nullptr;
  decltype(&::X509_STORE_CTX_get_ex_data) verification_data = nullptr;
  decltype(&::X509_STORE_CTX_get_error) verification_error = nullptr;
  decltype(&::X509_STORE_CTX_get_current_cert) verified_certificate = nullptr;
  decltype(&::X509_get_subject_name) subject_of = nullptr;
  decltype(&::X509_NAME_oneline) name_text = nullptr;
  decltype(&::X509_verify_cert_error_string) verification_text = nullptr;
  decltype(&::ERR_peek_error) peek_error = nullptr;

  std::string problem;  // empty: everything is available

  static const OpenSsl& get();
};

}  // namespace unisono::tcp
