// Certificates of hosts: who is admitted, who is refused, and the error texts.
#include "transport/tcp/certificates.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "transport/tcp/testing.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

namespace fs = std::filesystem;

class CertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_tls().empty() || std::system("openssl version > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "needs libssl3 and the program openssl";
    }
    folder_ = fs::temp_directory_path() / ("unisono-certificates-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "trusted");
  }
  void TearDown() override {
    if (!folder_.empty()) {
      fs::remove_all(folder_);
    }
  }
  void call(const std::string& words) const {
    const std::string command =
        "cd " + folder_.string() + " && openssl " + words + " > openssl.txt 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  // Writes NAME.pem with certificate and key, and NAME.crt with only the certificate.
  void make(const std::string& name) const {
    call("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=" + name +
         " -keyout " + name + ".key -out " + name + ".crt");
    bind(name);
  }
  void bind(const std::string& name) const {
    std::ofstream both(folder_ / (name + ".pem"));
    both << std::ifstream(folder_ / (name + ".crt")).rdbuf()
         << std::ifstream(folder_ / (name + ".key")).rdbuf();
  }
  void trust(const std::string& name) const {
    fs::copy_file(folder_ / (name + ".crt"), folder_ / "trusted" / (name + ".crt"));
  }
  void distrust(const std::string& name) const {
    fs::remove(folder_ / "trusted" / (name + ".crt"));
  }
  std::shared_ptr<const Certificates> identity(const std::string& name) const {
    return std::make_shared<Certificates>((folder_ / (name + ".pem")).string(),
                                          (folder_ / "trusted").string());
  }

  struct Met {
    Tls::State dialer = Tls::State::going_on;
    Tls::State listener = Tls::State::going_on;
    std::string dialer_says, listener_says, word;
  };
  // Both sides have the same key unless the test says otherwise.
  static Met meet(std::shared_ptr<const Certificates> dials,
                  std::shared_ptr<const Certificates> listens, bool one_key = true) {
    const SocketPair sockets = socket_pair();
    Digest key{};
    fill_random(key);
    Digest other = key;
    if (!one_key) {
      other[0] ^= std::byte{1};
    }
    Tls dialer(sockets.a.get(), key, false, std::move(dials));
    std::optional<Tls> listener;
    listener.emplace(sockets.b.get(), other, true, std::move(listens));
    Met met;
    for (int i = 0;
         i < 2000 && (met.dialer == Tls::State::going_on || met.listener == Tls::State::going_on);
         ++i) {
      if (met.dialer == Tls::State::going_on) {
        met.dialer = dialer.shake();
      }
      if (met.listener == Tls::State::going_on) {
        met.listener = listener->shake();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    met.dialer_says = dialer.problem();
    met.listener_says = listener->problem();
    if (met.dialer == Tls::State::done && met.listener == Tls::State::done) {
      const iovec part{const_cast<char*>("hello"), 5};
      EXPECT_EQ(dialer.send({&part, 1}), 5);
      met.word.resize(5);
      const iovec room{met.word.data(), 5};
      for (int i = 0; i < 1000 && listener->receive({&room, 1}) != 5; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return met;
  }
  static std::string refusal(const std::string& identity, const std::string& trusted) {
    try {
      const Certificates made(identity, trusted);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  fs::path folder_;
};

TEST_F(CertificatesTest, LetHostsInThatEachOtherKnow) {
  make("a");
  make("b");
  trust("a");
  trust("b");
  const Met met = meet(identity("a"), identity("b"));
  EXPECT_EQ(met.dialer, Tls::State::done) << met.dialer_says;
  EXPECT_EQ(met.listener, Tls::State::done) << met.listener_says;
  EXPECT_EQ(met.word, "hello");
}

TEST_F(CertificatesTest, MayBeSignedByOneThatIsTrusted) {
  make("authority");
  trust("authority");
  for (const std::string name : {"a", "b"}) {
    call("req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
         " -keyout " + name + ".key -out " + name + ".csr");
    call("x509 -req -in " + name + ".csr -CA authority.crt -CAkey authority.key -CAcreateserial " +
         "-days 1 -out " + name + ".crt");
    bind(name);
  }
  const Met met = meet(identity("a"), identity("b"));
  EXPECT_EQ(met.word, "hello") << met.dialer_says << met.listener_says;
}

TEST_F(CertificatesTest, AreRevokedByLeavingAFileOut) {
  make("a");
  make("b");
  trust("a");
  trust("b");
  const auto a = identity("a");
  distrust("a");
  const Met met = meet(a, identity("b"));
  EXPECT_EQ(met.listener, Tls::State::failed);
  EXPECT_EQ(met.dialer, Tls::State::failed);
  EXPECT_EQ(
      met.listener_says.find("its certificate (/CN=a) is not trusted by the certificates in " +
                             (folder_ / "trusted").string()),
      0U)
      << met.listener_says;
  EXPECT_EQ(met.dialer_says, "it does not trust this host's certificate (UNISONO_TLS_IDENTITY)");
}

TEST_F(CertificatesTest, OfAListenerAreLookedAtAsWell) {
  make("a");
  make("b");
  trust("a");
  const Met met = meet(identity("a"), identity("b"));
  EXPECT_EQ(met.dialer, Tls::State::failed);
  EXPECT_EQ(met.listener, Tls::State::failed);
  EXPECT_NE(met.dialer_says.find("its certificate (/CN=b) is not trusted"), std::string::npos)
      << met.dialer_says;
}

TEST_F(CertificatesTest, ExpireAndThenAreNotTrusted) {
  make("a");
  make("b");
  call("x509 -in a.crt -signkey a.key -days -1 -out old.crt");
  fs::rename(folder_ / "old.crt", folder_ / "a.crt");
  bind("a");
  trust("a");
  trust("b");
  const Met met = meet(identity("a"), identity("b"));
  EXPECT_EQ(met.listener, Tls::State::failed);
  EXPECT_NE(met.listener_says.find("expired"), std::string::npos) << met.listener_says;
}

// The peer has a valid certificate, but relays the handshake of two other hosts.
TEST_F(CertificatesTest, AreNotEnoughWithoutTheKeyOfTheHandshake) {
  make("a");
  make("b");
  trust("a");
  trust("b");
  const Met met = meet(identity("a"), identity("b"), false);
  EXPECT_EQ(met.dialer, Tls::State::failed);
  EXPECT_EQ(met.listener, Tls::State::failed);
  EXPECT_EQ(met.dialer_says, "the TLS handshake failed");
}

TEST_F(CertificatesTest, AreRefusedByNameWhereTheyAreNone) {
  make("a");
  make("b");
  const std::string a = (folder_ / "a.pem").string();
  const std::string trusted = (folder_ / "trusted").string();
  EXPECT_NE(refusal(a, trusted).find("it has no *.pem or *.crt file"), std::string::npos);
  EXPECT_NE(refusal(a, trusted + "/none").find("No such file"), std::string::npos);
  trust("b");
  EXPECT_EQ(refusal(a, trusted), "none");
  EXPECT_NE(
      refusal(trusted + "/b.crt", trusted).find("there is no certificate with its private key"),
      std::string::npos);
  std::ofstream(folder_ / "mixed.pem")
      << std::ifstream(folder_ / "a.crt").rdbuf() << std::ifstream(folder_ / "b.key").rdbuf();
  EXPECT_NE(refusal((folder_ / "mixed.pem").string(), trusted).find("private key"),
            std::string::npos);
  std::ofstream(folder_ / "trusted" / "damaged.pem") << "-----BEGIN CERTIFICATE-----\nnone\n";
  EXPECT_NE(refusal(a, trusted).find("there is no certificate in damaged.pem"), std::string::npos);
}

}  // namespace
}  // namespace unisono::tcp
