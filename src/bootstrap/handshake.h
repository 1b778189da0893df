// How two ranks prove to each other that they are of the same job, before anything else is said.
//
//   dialer -> listener   hello    who I am, whom I want, a nonce, a proof that I have the token
//   listener -> dialer   answer   who I am, my nonce, my proof
//   dialer -> listener   proof    mine
//   listener -> dialer   verdict  welcome, or what is wrong
//
// Each is one frame of 128 bytes. A proof is an HMAC-SHA-256 with the job's token over the side and
// both greetings, so over rank, size, version, job and both nonces: no proof fits another
// connection, and none can be sent back. That of the hello is over the hello alone: by it a
// listener knows which rank it was that hung up before it could prove more. Whoever finds something
// wrong says what in a verdict, and hangs up.
//
// No input or output here: bytes in, bytes out.
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
  std::string token;  // whoever knows it is let in; empty: everybody knows it
  int streams = 1;    // to each peer; of all ranks the same
  Protection protection = {};
  std::shared_ptr<const Certificates> certificates = nullptr;  // where protection says so
};

enum class HandshakeRefusal : std::uint8_t {
  none,
  not_ours,  // no greeting of this library
  byte_order,
  version,  // of the library or of the protocol
  job,
  size,
  rank,        // it is not a rank of this world
  target,      // another rank was wanted
  streams,     // another number of them
  protection,  // encryption or checksums here and not there
  duplicate,   // it is here already
  token,
  out_of_turn,  // another frame was due
};
inline constexpr int kRefusals = 13;
// In words about `who` ("rank 3", "the other side"): "rank 3 has another job token".
std::string describe(HandshakeRefusal refusal, const std::string& who);

// One connection of a pair of ranks: each of its streams is one.
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
  // What is to be sent, until sent() has taken all of it.
  std::span<const std::byte> output() const { return std::span(out_).subspan(sent_); }
  void sent(std::size_t bytes) { sent_ += bytes; }
  void feed(std::span<const std::byte, kHandshakeBytes> frame);
  // For a listener in state `admitting`: the proof was right; now the rank is let in, or is not.
  void admit(HandshakeRefusal refusal = HandshakeRefusal::none);

  // The peer as it says; proved in the states `admitting` and `done`.
  const Wanted& peer() const { return peer_; }
  // In the state `done`: a key that only these two sides of this handshake know.
  Digest session_key() const { return keyed('K'); }
  bool listens() const { return listens_; }
  // The peer has proved who it is, whatever comes of the rest.
  bool has_checked_peer() const { return due_ == Step::verdict || state_ == State::admitting; }
  // It has said a greeting of this job.
  bool has_greeted() const { return listens_ && due_ == Step::proof; }
  // The same, and who says so had the token; not that it is still the same that says it now.
  bool is_of_the_token() const;
  const Identity& self() const { return self_; }
  bool knows_peer() const { return knows_peer_; }
  // It has named the job of this rank, which anybody may know: not proved.
  bool is_of_job() const { return claims_.is_of_job; }
  HandshakeRefusal refusal() const { return refusal_; }
  std::string problem() const;

 private:
  enum class Step : std::uint8_t { hello = 1, answer, proof, verdict };
  struct Greeting;
  // What the peer has last said of itself, not proved: it decides how a refusal is told.
  struct Claims {
    bool is_of_job = false;
    std::int32_t size = 0;
    std::uint8_t protection = 0;  // its bits
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
  // A digest of both greetings, by the token.
  Digest proof_of_hello() const;
  Digest keyed(char purpose) const;

  Identity self_;
  bool listens_;
  State state_ = State::going_on;
  Step due_ = Step::hello;  // what the peer says next
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
