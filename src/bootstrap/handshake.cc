#include "bootstrap/handshake.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include "transport/networks.h"

namespace unisono::tcp {
namespace {

constexpr char kMagic[9] = "unisonoT";
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint16_t kProtocol = 4;  // 4: the network is a number in the protection bits
constexpr std::string_view kVersion = UNISONO_VERSION;
constexpr std::size_t kGreetingBytes = 96;  // all but the proof

}  // namespace

// The greeting as sent, in the sender's byte order; a rank with another byte order is refused.
struct Handshake::Greeting {
  char magic[8];
  std::uint32_t byte_order;
  std::uint16_t protocol;
  Step step;
  HandshakeRefusal refusal;
  char version[16];
  std::int32_t rank;
  std::int32_t size;
  std::int32_t peer;
  std::uint16_t stream;
  std::uint8_t streams;
  std::uint8_t protection;  // Protection::bits()
  std::byte job[16];
  std::byte nonce[32];
  Digest proof;
};

std::string describe(HandshakeRefusal refusal, const std::string& who) {
  switch (refusal) {
    case HandshakeRefusal::none:
      return "";
    case HandshakeRefusal::not_ours:
      return who + " does not use unisono's protocol";
    case HandshakeRefusal::byte_order:
      return who + " has another byte order";
    case HandshakeRefusal::version:
      return who + " runs another version of unisono";
    case HandshakeRefusal::job:
      return who + " belongs to another job";
    case HandshakeRefusal::size:
      return who + " has another number of ranks for this job";
    case HandshakeRefusal::rank:
      return who + " is not a rank of this job";
    case HandshakeRefusal::target:
      return who + " expected another rank at this address";
    case HandshakeRefusal::streams:
      return who + " uses another number of streams";
    case HandshakeRefusal::protection:
      return who + " protects its connections in another way";
    case HandshakeRefusal::duplicate:
      return who + " is already connected: two processes have this rank";
    case HandshakeRefusal::token:
      return who + " has another job token";
    case HandshakeRefusal::out_of_turn:
      return who + " sent a message out of order";
  }
  return who + " was refused";
}

namespace {

std::string one_side(const std::string& who, std::uint8_t bits) {
  return who + " has UNISONO_TLS=" + std::to_string(bits & 1) +
         " and UNISONO_CHECKSUM=" + std::to_string(bits >> 1 & 1);
}

constexpr std::uint8_t kCertificates = 8;

// Makes no assumption about the bits: a stranger may send anything.
std::string network_of(std::uint8_t bits) {
  const auto networks = transport::networks();
  const std::size_t number = bits >> 4;
  return " has UNISONO_NETWORK=" +
         (number < networks.size() ? std::string(networks[number].name) : "?");
}

std::string describe_protection(const std::string& who, std::uint8_t theirs,
                                const std::string& self, std::uint8_t ours) {
  if (theirs >> 4 != ours >> 4) {
    return who + network_of(theirs) + ", " + self + network_of(ours) +
           ": all ranks must have the same";
  }
  if (((theirs ^ ours) & kCertificates) != 0 && (theirs & ours & 1U) != 0) {
    const bool here = (ours & kCertificates) != 0;
    return (here ? self : who) + " has UNISONO_TLS_IDENTITY, " + (here ? who : self) +
           " does not: all ranks must show a certificate, or none";
  }
  return one_side(who, theirs) + ", " + one_side(self, ours) + ": all ranks must have the same";
}

// Filters the version, because it may come from a stranger and is printed on a terminal.
std::string spoken(std::string_view version, int protocol) {
  std::string text(version.substr(0, version.find('\0')));
  std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text + " (protocol " + std::to_string(protocol) + ")";
}

}  // namespace

std::string Handshake::problem() const {
  const std::string peer = knows_peer_ ? "rank " + std::to_string(peer_.peer) : "the other side";
  if (refusal_ == HandshakeRefusal::protection) {
    return describe_protection(peer, claims_.protection, "rank " + std::to_string(self_.rank),
                               self_.protection.bits());
  }
  if (refusal_ == HandshakeRefusal::version) {
    return peer + " runs unisono " + claims_.version + ", rank " + std::to_string(self_.rank) +
           " runs " + spoken(kVersion, kProtocol) + ": all ranks must have the same version";
  }
  if (refusal_ == HandshakeRefusal::size) {
    return peer + " expects a job of " + std::to_string(claims_.size) + " ranks, rank " +
           std::to_string(self_.rank) + " expects " + std::to_string(self_.size) +
           ": all ranks must have the same size";
  }
  if (!by_peer_) {
    return describe(refusal_, peer);
  }
  return peer + " says: " + describe(refusal_, "rank " + std::to_string(self_.rank));
}

Handshake Handshake::dial(const Identity& self, const Wanted& wanted) {
  Handshake shake(self, false);
  shake.peer_ = wanted;
  shake.knows_peer_ = true;
  shake.due_ = Step::answer;
  Greeting hello = shake.greeting(Step::hello);
  std::memcpy(shake.hello_.data(), &hello, kHandshakeBytes);
  hello.proof = shake.proof_of_hello();
  shake.say(hello);
  return shake;
}

Handshake Handshake::listen(const Identity& self) {
  return {self, true};
}

Handshake::Greeting Handshake::greeting(Step step) const {
  static_assert(sizeof(Greeting) == kHandshakeBytes && offsetof(Greeting, proof) == kGreetingBytes);
  Greeting mine{};
  std::memcpy(mine.magic, kMagic, sizeof(mine.magic));
  mine.byte_order = kByteOrder;
  mine.protocol = kProtocol;
  mine.step = step;
  kVersion.copy(mine.version, sizeof(mine.version));
  mine.rank = self_.rank;
  mine.size = self_.size;
  mine.peer = peer_.peer;
  mine.stream = static_cast<std::uint16_t>(peer_.stream);
  mine.streams = static_cast<std::uint8_t>(self_.streams);
  mine.protection = self_.protection.bits();
  const Digest job = sha256(self_.job);
  std::memcpy(mine.job, job.data(), sizeof(mine.job));
  if (step == Step::hello || step == Step::answer) {
    fill_random(mine.nonce);
  }
  return mine;
}

void Handshake::say(const Greeting& greeting) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&greeting);
  out_.insert(out_.end(), bytes, bytes + sizeof(greeting));
}

void Handshake::refuse(HandshakeRefusal refusal) {
  state_ = State::refused;
  refusal_ = refusal;
  if (refusal == HandshakeRefusal::not_ours) {
    return;  // strangers get no answer
  }
  Greeting verdict = greeting(Step::verdict);
  verdict.refusal = refusal;
  say(verdict);
}

Handshake::Claims Handshake::claims_of(const Greeting& theirs) const {
  const Greeting mine = greeting(Step::verdict);
  return {.is_of_job = std::memcmp(theirs.job, mine.job, sizeof(mine.job)) == 0,
          .size = theirs.size,
          .protection = theirs.protection,
          .version = spoken({theirs.version, sizeof(theirs.version)}, theirs.protocol)};
}

HandshakeRefusal Handshake::check(const Greeting& theirs) const {
  const Greeting mine = greeting(Step::verdict);
  if (std::memcmp(theirs.magic, mine.magic, sizeof(mine.magic)) != 0) {
    return HandshakeRefusal::not_ours;
  }
  if (theirs.byte_order != kByteOrder) {
    return HandshakeRefusal::byte_order;
  }
  if (theirs.protocol != kProtocol ||
      std::memcmp(theirs.version, mine.version, sizeof(mine.version)) != 0) {
    return HandshakeRefusal::version;
  }
  if (std::memcmp(theirs.job, mine.job, sizeof(mine.job)) != 0) {
    return HandshakeRefusal::job;
  }
  if (theirs.size != self_.size) {
    return HandshakeRefusal::size;
  }
  if (theirs.rank < 0 || theirs.rank >= self_.size || theirs.rank == self_.rank) {
    return HandshakeRefusal::rank;
  }
  return theirs.peer == self_.rank ? HandshakeRefusal::none : HandshakeRefusal::target;
}

void Handshake::feed(std::span<const std::byte, kHandshakeBytes> frame) {
  if (state_ != State::going_on) {
    return;
  }
  Greeting theirs;
  std::memcpy(&theirs, frame.data(), sizeof(theirs));
  if (std::memcmp(theirs.magic, kMagic, sizeof(theirs.magic)) != 0) {
    return refuse(HandshakeRefusal::not_ours);
  }
  claims_ = claims_of(theirs);
  if (theirs.step == Step::verdict && (due_ != Step::hello || !listens_)) {
    return hear_verdict(theirs);
  }
  // The greeting is checked before its step, because other versions may not have the step.
  if (const HandshakeRefusal problem = check(theirs); problem != HandshakeRefusal::none) {
    if (listens_ && problem != HandshakeRefusal::rank && theirs.rank >= 0) {
      peer_.peer = theirs.rank;
      knows_peer_ = true;
    }
    return refuse(problem);
  }
  if (theirs.step != due_) {
    return refuse(HandshakeRefusal::out_of_turn);
  }
  switch (due_) {
    case Step::hello:
      std::memcpy(hello_.data(), frame.data(), kHandshakeBytes);
      return hear_hello(theirs);
    case Step::answer:
      std::memcpy(answer_.data(), frame.data(), kHandshakeBytes);
      return hear_answer(theirs);
    case Step::proof:
      return hear_proof(theirs);
    case Step::verdict:
      return;
  }
}

Digest Handshake::keyed(char purpose) const {
  std::vector<std::byte> said;
  said.push_back(static_cast<std::byte>(purpose));
  said.insert(said.end(), hello_.begin(), hello_.begin() + kGreetingBytes);
  said.insert(said.end(), answer_.begin(), answer_.begin() + kGreetingBytes);
  return hmac_sha256(self_.token, said);
}

// This proof covers only the hello. Anybody who has recorded the hello can repeat both, so it
// admits nobody.
Digest Handshake::proof_of_hello() const {
  std::vector<std::byte> said{std::byte{'H'}};
  said.insert(said.end(), hello_.begin(), hello_.begin() + kGreetingBytes);
  return hmac_sha256(self_.token, said);
}

bool Handshake::is_of_the_token() const {
  Greeting hello;
  std::memcpy(&hello, hello_.data(), sizeof(hello));
  return has_greeted() && equal(hello.proof, proof_of_hello());
}

void Handshake::hear_hello(const Greeting& hello) {
  peer_ = {.peer = hello.rank, .stream = hello.stream};
  knows_peer_ = true;
  if (hello.streams != self_.streams || hello.stream >= hello.streams) {
    return refuse(HandshakeRefusal::streams);
  }
  if (hello.protection != self_.protection.bits()) {
    return refuse(HandshakeRefusal::protection);
  }
  Greeting answer = greeting(Step::answer);
  std::memcpy(answer_.data(), &answer, kHandshakeBytes);
  answer.proof = proof_of(true);
  due_ = Step::proof;
  say(answer);
}

void Handshake::hear_answer(const Greeting& answer) {
  if (answer.rank != peer_.peer) {
    return refuse(HandshakeRefusal::target);
  }
  if (answer.protection != self_.protection.bits()) {
    return refuse(HandshakeRefusal::protection);
  }
  if (!equal(answer.proof, proof_of(true))) {
    return refuse(HandshakeRefusal::token);
  }
  Greeting proof = greeting(Step::proof);
  proof.proof = proof_of(false);
  due_ = Step::verdict;
  say(proof);
}

void Handshake::hear_proof(const Greeting& proof) {
  if (proof.rank != peer_.peer || !equal(proof.proof, proof_of(false))) {
    return refuse(HandshakeRefusal::token);
  }
  state_ = State::admitting;
}

void Handshake::admit(HandshakeRefusal refusal) {
  if (refusal != HandshakeRefusal::none) {
    return refuse(refusal);
  }
  say(greeting(Step::verdict));
  state_ = State::done;
}

void Handshake::hear_verdict(const Greeting& verdict) {
  if (verdict.refusal == HandshakeRefusal::none) {
    if (due_ != Step::verdict) {
      return refuse(HandshakeRefusal::out_of_turn);
    }
    state_ = State::done;
    return;
  }
  state_ = State::refused;
  by_peer_ = true;
  refusal_ = static_cast<int>(verdict.refusal) < kRefusals ? verdict.refusal
                                                           : HandshakeRefusal::out_of_turn;
}

}  // namespace unisono::tcp
