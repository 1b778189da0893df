#include "bootstrap/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/asking.h"
#include "bootstrap/auth.h"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostPending = 64;
// Time limit of a pending connection. A rank that has begun to talk may be stopped or starved of
// CPU time for a while, and a late rank is refused for good. A silent connection only occupies a
// slot, which others can take.
constexpr int kPendingMs = 10'000;
// If all slots are used, a peer that has been silent for this time is dropped for a new one. If the
// dropped peer was a slow rank, it tries again.
constexpr std::chrono::milliseconds kSilentPeer(100);

}  // namespace

Rendezvous::Rendezvous(const JoinRequest& join_request, UniqueFd listener)
    : join_request_(join_request),
      listener_(std::move(listener)),
      deadline_(join_request.deadline),
      members_(static_cast<std::size_t>(join_request.size)) {
  members_[0].process = {::getpid(), ::getpid()};
}

Meeting Rendezvous::collect() {
  while (joined_ < join_request_.size) {
    wait();
    if (is_interrupted()) {
      fail(ErrorCode::aborted, names_.text(0) + " was interrupted before all ranks were there");
    }
    check_members();
    for (auto pending = pending_.begin(); pending != pending_.end();) {
      pending = attend(*pending) ? std::next(pending) : pending_.erase(pending);
    }
    accept_pending();
    check_absent();
    if (joined_ < join_request_.size && deadline_.passed()) {
      fail_missing();
    }
    if (joined_ < join_request_.size && !said_waiting_ && silent_.passed()) {
      said_waiting_ = true;
      say_waiting("joined " + std::to_string(joined_) + " of " +
                  std::to_string(join_request_.size) + ", still waiting for " + missing_ranks());
    }
  }
  return welcome();
}

// If the watch throws, a rank will never come; the other ranks get the same error.
bool Rendezvous::is_interrupted() {
  try {
    return deadline_.is_interrupted();
  } catch (const Error& error) {
    tell(error_bytes(error.code(), error.message(), error.context().peer));
    throw;
  }
}

// Waits until something happens or a deadline passes.
void Rendezvous::wait() {
  std::vector<pollfd> entries;
  // Without a free descriptor the listener stays readable, so a poll for it would return at once.
  const bool deaf = pending_.size() >= kMostPending || starved_;
  entries.push_back({listener_.get(), static_cast<short>(deaf ? 0 : POLLIN), 0});
  Deadline next = deaf ? Deadline::earlier(deadline_, Deadline::after_ms(20)) : deadline_;
  if (!said_waiting_) {
    next = Deadline::earlier(next, silent_);
  }
  if (absence_check_.has_log()) {
    next = Deadline::earlier(next, Deadline::after_ms(kAskMs));
  }
  for (const Pending& pending : pending_) {
    entries.push_back({pending.socket.get(), POLLIN, 0});
    next = Deadline::earlier(next, pending.deadline);
  }
  for (const Member& member : members_) {
    if (member.socket) {
      entries.push_back({member.socket.get(), POLLRDHUP, 0});
    }
  }
  ::poll(entries.data(), entries.size(), next.poll_ms());
}

// Ends the job if a member leaves before all ranks have come.
void Rendezvous::check_members() {
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (member.socket && wait_for(member.socket.get(), POLLRDHUP, Deadline::after_ms(0))) {
      fail(ErrorCode::connection,
           names_.text(static_cast<int>(rank)) + " (process " +
               std::to_string(member.process.seen) + ") joined and left before all " +
               std::to_string(join_request_.size) +
               " ranks were there\nlook at the output of that rank",
           static_cast<int>(rank));
    }
  }
}

void Rendezvous::check_absent() {
  const Absence absence = absence_check_.find([this](int rank) {
    return rank > 0 && rank < join_request_.size &&
           !members_[static_cast<std::size_t>(rank)].socket;
  });
  if (absence.rank >= 0) {
    absent_ = absence.ranks;
    fail(ErrorCode::connection, absence.message, absence.rank);
  }
}

bool Rendezvous::make_room() {
  if (pending_.size() < kMostPending) {
    return true;
  }
  const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                   [](const Pending& pending) { return !pending.said_hello; });
  if (oldest == pending_.end() || std::chrono::steady_clock::now() - oldest->since < kSilentPeer) {
    return false;
  }
  pending_.erase(oldest);
  return true;
}

void Rendezvous::accept_pending() {
  while (make_room()) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      note_starvation(errno);
      return;
    }
    starved_.reset();
    const auto who = credentials_of(socket.get());
    if (!who || who->uid != ::geteuid()) {
      if (who) {
        refusal_ = "process " + std::to_string(who->pid) + " of user " + std::to_string(who->uid) +
                   " was turned away, because this rank runs as user " +
                   std::to_string(::geteuid()) + ": " + std::string(kOneUser);
      }
      continue;
    }
    Pending& pending = pending_.emplace_back();
    pending.socket = std::move(socket);
    pending.pid = who->pid;
    pending.deadline = Deadline::after_ms(kPendingMs);
    pending.since = std::chrono::steady_clock::now();
    if (!attend(pending)) {  // most have sent their hello by now
      pending_.pop_back();
    }
  }
}

void Rendezvous::note_starvation(int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) {
    starved_.reset();
    return;
  }
  starved_ = starved_.value_or(Deadline::after_ms(kStarvedMs));
  if (starved_->passed()) {
    fail(ErrorCode::resource, names_.text(0) +
                                  " cannot accept the other ranks: it has no free file descriptor"
                                  "\nraise the limit of open files (ulimit -n): " +
                                  names_.text(0) + " needs about two per other rank");
  }
}

bool Rendezvous::attend(Pending& pending) {
  if (pending.deadline.passed()) {
    if (pending.said_hello) {
      turn_away(pending, "did not prove in time that it has the job token");
    }
    return false;
  }
  return pending.said_hello ? hear_proof(pending) : hear_hello(pending);
}

bool Rendezvous::hear_hello(Pending& pending) {
  const Io result = receive_hello(pending.socket.get(), pending.hello);
  if (result != Io::done) {
    return result == Io::would_block;
  }
  const auto problem = hello_problem(pending.hello);
  if (!problem) {
    return false;
  }
  const bool token = !join_request_.token.empty();
  if (!problem->empty()) {
    const std::string who = "process " + std::to_string(pending.pid) + " cannot join: " + *problem;
    if (!token) {
      fail(ErrorCode::config, who);
    }
    turn_away(pending, "cannot join: " + *problem);
    return false;
  }
  if (token != (pending.hello.has_token != 0)) {
    const std::string why = token ? "has no job token, but " + names_.text(0) + " has one"
                                  : "has a job token, but " + names_.text(0) + " has none";
    if (!token) {
      fail(ErrorCode::config, names_.text(pending.hello.rank) + " " + why +
                                  "\nset the same UNISONO_TOKEN on all ranks");
    }
    turn_away(pending, why);
    return false;
  }
  if (!token) {
    return let_in(pending);
  }
  pending.said_hello = true;
  fill_random(pending.nonce);
  const Proof proof =
      prove(join_request_.token, join_request_.job, Side::listener, pending.hello, pending.nonce);
  std::array<std::byte, kNonceBytes + sizeof(Proof)> challenge;
  std::copy(pending.nonce.begin(), pending.nonce.end(), challenge.begin());
  std::copy(proof.begin(), proof.end(), challenge.begin() + kNonceBytes);
  return send_packet(pending.socket.get(), FrameType::challenge, false, challenge, {}) == Io::done;
}

bool Rendezvous::hear_proof(Pending& pending) {
  Frame frame;
  bool more = false;
  const Io result = receive_packet(pending.socket.get(), frame, more);
  if (result == Io::would_block) {
    return true;
  }
  const Proof expected =
      prove(join_request_.token, join_request_.job, Side::joiner, pending.hello, pending.nonce);
  if (result != Io::done || frame.type != FrameType::proof || !equal(frame.bytes, expected)) {
    turn_away(pending, "has another job token");
    return false;
  }
  return let_in(pending);
}

// Admits a rank, which is trusted from here on: its errors are errors of the whole job.
bool Rendezvous::let_in(Pending& pending) {
  const Hello& hello = pending.hello;
  const std::string who =
      names_.text(hello.rank) + " (process " + std::to_string(pending.pid) + ")";
  if (hello.size != join_request_.size) {
    fail(ErrorCode::config,
         who + " expects a job of " + std::to_string(hello.size) + " ranks, " + names_.text(0) +
             " (process " + std::to_string(::getpid()) + ") says " +
             std::to_string(join_request_.size) +
             "\ngive all ranks the same size; give another job another UNISONO_JOB");
  }
  if (hello.rank < 0 || hello.rank >= join_request_.size) {
    fail(ErrorCode::config, who + " is not in 0.." + std::to_string(join_request_.size - 1));
  }
  Member& member = members_[static_cast<std::size_t>(hello.rank)];
  if (hello.rank == 0 || member.socket) {
    fail(ErrorCode::config,
         names_.text(hello.rank) + " was given twice: to process " +
             std::to_string(member.process.seen) + " and to process " +
             std::to_string(pending.pid) +
             "\ngive one of them another rank; give another job another UNISONO_JOB");
  }
  member = {std::move(pending.socket), {pending.pid, hello.pid}};
  deadline_ = Deadline::earlier(deadline_, Deadline::of_timeout(std::max(hello.patience_ms, 0)));
  ++joined_;
  return false;
}

void Rendezvous::turn_away(Pending& pending, const std::string& why) {
  const std::string who = names_.text(pending.hello.rank);
  refusal_ =
      "process " + std::to_string(pending.pid) + ", as " + who + ", was turned away: it " + why;
  const auto bytes =
      error_bytes(ErrorCode::config, who + " was turned away by " + names_.text(0) + ": it " + why +
                                         "\nuse the same UNISONO_TOKEN and version on all ranks");
  send_packet(pending.socket.get(), FrameType::error, false, bytes, {});
}

// Frees the address before any rank can leave, so that the next job of this name finds it free.
Meeting Rendezvous::welcome() {
  listener_.reset();
  pending_.clear();
  Meeting meeting;
  for (Member& member : members_) {
    meeting.processes.push_back(member.process);
  }
  for (Member& member : members_) {
    if (member.socket) {
      send_packet(member.socket.get(), FrameType::welcome, false,
                  std::as_bytes(std::span(meeting.processes)), {});
    }
    meeting.links.push_back(std::move(member.socket));
  }
  return meeting;
}

void Rendezvous::tell(std::span<const std::byte> reason) {
  for (const Pending& pending : pending_) {
    send_packet(pending.socket.get(), FrameType::error, false, reason, {});
  }
  for (const Member& member : members_) {
    if (member.socket) {
      send_packet(member.socket.get(), FrameType::error, false, reason, {});
    }
  }
}

void Rendezvous::fail(ErrorCode code, const std::string& message, int at_fault) {
  const auto bytes = error_bytes(code, message, names_.number(at_fault));
  tell(bytes);
  if (!deadline_.passed()) {
    tell_late_comers(bytes);
  }
  throw Error(code, message, {.rank = names_.number(0), .peer = names_.number(at_fault)});
}

// Ranks start at about the same time, so ranks that come slightly late also get the reason;
// otherwise they would wait for rank 0 in vain.
void Rendezvous::tell_late_comers(std::span<const std::byte> reason) {
  // This continues even after an interruption.
  const Deadline end = Deadline::earlier(deadline_.asking(nullptr), Deadline::after_ms(kLateMs));
  // If the child of an ended rank holds the connection, the connection still looks alive.
  const auto is_pending = [this](int rank) {
    return std::any_of(pending_.begin(), pending_.end(), [rank](const Pending& pending) {
      return pending.said_hello && pending.hello.rank == rank;
    });
  };
  int told = joined_ + static_cast<int>(pending_.size());
  told += static_cast<int>(
      std::count_if(absent_.begin(), absent_.end(), [&](int rank) { return !is_pending(rank); }));
  // Closing these may free the descriptors that are missing.
  pending_.clear();
  members_.clear();
  while (told < join_request_.size && wait_for(listener_.get(), POLLIN, end)) {
    const UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const auto who = socket ? credentials_of(socket.get()) : std::nullopt;
    if (who && who->uid == ::geteuid()) {
      send_packet(socket.get(), FrameType::error, false, reason, {});
      ++told;
    }
    if (end.passed()) {
      return;
    }
    if (!socket) {  // the listener stays readable, so waiting for it would not wait
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

std::vector<int> Rendezvous::missing() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < join_request_.size; ++rank) {
    if (!members_[static_cast<std::size_t>(rank)].socket) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

// Returns the missing ranks as text: "ranks 1, 3".
std::string Rendezvous::missing_ranks() const {
  constexpr std::size_t kMostNamed = 16;
  const std::vector<int> ranks = missing();
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(names_.number(ranks[i]));
  }
  return (ranks.size() > 1 ? "ranks " : "rank ") + text +
         (ranks.size() > kMostNamed ? " and " + std::to_string(ranks.size() - kMostNamed) + " more"
                                    : "");
}

void Rendezvous::fail_missing() {
  std::string message = "joined " + std::to_string(joined_) + " of " +
                        std::to_string(join_request_.size) + "; missing " + missing_ranks() +
                        " after " + waited(join_request_);
  if (!refusal_.empty()) {
    message += " (" + refusal_ + ")";
  }
  fail(ErrorCode::connection,
       message +
           "\ncheck that these ranks run on this host with the same UNISONO_JOB, or raise "
           "UNISONO_CONNECT_TIMEOUT_MS",
       missing().size() == 1 ? missing()[0] : -1);
}

}  // namespace unisono::comm
