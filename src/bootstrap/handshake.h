// The handshake by which two ranks prove to each other that they belong to the same job, before
// they exchange anything else.
//
//   dialer -> listener   hello    my identity, the wanted rank, a nonce, a proof of the token
//   listener -> dialer   answer   my identity, my nonce, my proof
//   dialer -> listener   proof    my proof
//   listener -> dialer   verdict  welcome, or the reason of a refusal
//
// Each message is one frame of 128 bytes. A proof is an HMAC-SHA-256 with the job's token over the
// side and both greetings, and so over rank, size, version, job and both nonces. Therefore no proof
// fits another connection, and nobody can send a proof back to its author. The hello's proof covers
// only the hello. If the dialer closes early, this proof tells the listener which rank it was. A
// side that finds an error sends it as the verdict and closes.
//
// This file does no input or output: bytes in, bytes out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/secret.h"
#include "transport/tcp/certificates.h"
#include "transport/tcp/protection.h"

namespace unisono::tcp {

inline constexpr std::size_t kHandshakeBytes = 128;

struct Identity {
  int rank = 0;
  int size = 1;
  std::string job;
  std::string token;  // admits everybody who knows it; empty: everybody
  int streams = 1;    // to each peer; the same on all ranks
  Protection protection = {};
  std::shared_ptr<const Certificates> certificates = nullptr;  // if protection requires them
};

enum class HandshakeRefusal : std::uint8_t {
  none,
  not_ours,  // not a greeting of this library
  byte_order,
  version,  // of the library or of the protocol
  job,
  size,
  rank,        // not a rank of this world
  target,      // another rank was wanted
  streams,     // another number of streams
  protection,  // encryption or checksums on one side only
  duplicate,   // the rank is already connected
  token,
  out_of_turn,  // another frame was expected
};
inline constexpr int kRefusals = 13;
// Describes a refusal of `who` ("rank 3", "the other side"): "rank 3 has another job token".
std::string describe(HandshakeRefusal refusal, const std::string& who);

// One stream between a pair of ranks.
struct Wanted {
  int peer = 0;
  int stream = 0;
};

class Handshake {
 public:
  enum class State : std::uint8_t { going_on, admitting, done, refused };

  static Handshake dial(const Identity& self, const Wanted& wanted);
  static Handshake listen(const Identity& self);

  State state() const { return state_; }
  // The bytes to send; sent() removes them.
  std::span<const std::byte> output() const { return std::span(out_).subspan(sent_); }
  void sent(std::size_t bytes) { sent_ += bytes; }
  void feed(std::span<const std::byte, kHandshakeBytes> frame);
  // For a listener in state `admitting`, which has received a correct proof: admits or refuses the
  // rank.
  void admit(HandshakeRefusal refusal = HandshakeRefusal::none);

  // Returns the peer's own description; it is proved in the states `admitting` and `done`.
  const Wanted& peer() const { return peer_; }
  // In state `done`: returns a key that only the two sides of this handshake know.
  Digest session_key() const { return keyed('K'); }
  bool listens() const { return listens_; }
  // Returns true if the peer has proved its identity, even if the handshake fails later.
  bool has_checked_peer() const { return due_ == Step::verdict || state_ == State::admitting; }
  // Returns true if the peer has sent a greeting of this job.
  bool has_greeted() const { return listens_ && due_ == Step::proof; }
  // As has_greeted(), and the author of the greeting had the token. The author may differ from this
  // peer, which may have recorded the greeting.
  bool is_of_the_token() const;
  const Identity& self() const { return self_; }
  bool knows_peer() const { return knows_peer_; }
  // Returns true if the peer has named this rank's job. This proves nothing, because anybody may
  // know the name.
  bool is_of_job() const { return claims_.is_of_job; }
  HandshakeRefusal refusal() const { return refusal_; }
  std::string problem() const;

 private:
  enum class Step : std::uint8_t { hello = 1, answer, proof, verdict };
  struct Greeting;
  // The peer's latest description of itself, which is not proved. It decides how a refusal is
  // reported.
  struct Claims {
    bool is_of_job = false;
    std::int32_t size = 0;
    std::uint8_t protection = 0;  // as bits
    std::string version = {};     // "0.1.0 (protocol 3)"
  };
  Handshake(const Identity& self, bool listens) : self_(self), listens_(listens) {}
  Greeting greeting(Step step) const;
  void say(const Greeting& greeting);
  void refuse(HandshakeRefusal refusal);
  Claims claims_of(const Greeting& theirs) const;
  HandshakeRefusal check(const Greeting& theirs) const;
  void hear_hello(const Greeting& hello);
  void hear_answer(const Greeting& answer);
  void hear_proof(const Greeting& proof);
  void hear_verdict(const Greeting& verdict);
  Digest proof_of(bool listener) const { return keyed(listener ? 'L' : 'D'); }
  // Returns a digest of both greetings with the token.
  Digest proof_of_hello() const;
  Digest keyed(char purpose) const;

  Identity self_;
  bool listens_;
  State state_ = State::going_on;
  Step due_ = Step::hello;  // what the peer sends next
  Wanted peer_;
  bool knows_peer_ = false;
  Claims claims_;
  HandshakeRefusal refusal_ = HandshakeRefusal::none;
  bool by_peer_ = false;
  std::array<std::byte, kHandshakeBytes> hello_ = {};
  std::array<std::byte, kHandshakeBytes> answer_ = {};
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;
};

}  // namespace unisono::tcp
