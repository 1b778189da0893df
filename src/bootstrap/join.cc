// Connecting on the side of the ranks that look for rank 0.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "base/abstract_address.h"
#include "base/env.h"
#include "bootstrap/absence.h"
#include "bootstrap/auth.h"
#include "bootstrap/end_reason.h"
#include "bootstrap/meet.h"
#include "bootstrap/process.h"

namespace unisono::comm {
namespace {

using std::chrono::microseconds;

// Rank 0 decides for all ranks at the earliest deadline; this is its time to report the decision.
constexpr int kGraceMs = 1000;
constexpr int kLookMs = 500;  // without a rank 0 of this user, until those of others are looked for

UniqueFd connect_to(const std::string& address) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    throw Error(ErrorCode::resource, std::string("cannot make a socket for the rendezvous: ") +
                                         std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
  const AbstractAddress to(address);
  if (::connect(socket.get(), to.get(), to.length()) != 0) {
    socket.reset();
  }
  return socket;
}

// Finds another user whose rank 0 listens for a job of this name.
std::optional<uid_t> other_user_of(const std::string& job) {
  constexpr std::string_view kPrefix = "@unisono-";
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find(kPrefix);
    if (at == std::string::npos) {
      continue;
    }
    const char* const digits = line.data() + at + kPrefix.size();
    uid_t user = 0;
    const auto [end, error] = std::from_chars(digits, line.data() + line.size(), user);
    if (error == std::errc() && user != ::geteuid() &&
        line.substr(at + 1) == address_of(job, user)) {
      return user;
    }
  }
  return std::nullopt;
}

// Describes another user's rank 0. This is only reported as an obstacle, because that rank 0 may
// belong to another job of the same name. The connection lets that rank 0 report the obstacle as
// well.
std::string find_other_user(const std::string& job) {
  const auto user = other_user_of(job);
  if (!user) {
    return {};
  }
  static_cast<void>(connect_to(address_of(job, *user)));
  return "the job's rank 0 runs as user " + std::to_string(*user) + " and this rank as user " +
         std::to_string(::geteuid()) + ": " + std::string(kOneUser);
}

// Checks that the listener knows the token, then proves that this rank does.
void answer_challenge(int socket, const Frame& challenge, const Hello& hello,
                      const JoinRequest& join_request) {
  const RankNames& names = join_request.names;
  const std::span<const std::byte> bytes(challenge.bytes);
  if (join_request.token.empty() || bytes.size() != kNonceBytes + sizeof(Proof)) {
    throw Error(ErrorCode::config, names.text(0) + " requires a job token, but " +
                                       names.text(join_request.rank) +
                                       " does not have\nset the same UNISONO_TOKEN on all ranks");
  }
  const auto nonce = bytes.first<kNonceBytes>();
  const Proof theirs = prove(join_request.token, join_request.job, Side::listener, hello, nonce);
  if (!equal(theirs, bytes.subspan(kNonceBytes))) {
    throw Error(ErrorCode::config, "the job token of " + names.text(join_request.rank) +
                                       " is not that of " + names.text(0) +
                                       "\nset the same UNISONO_TOKEN on all ranks");
  }
  const Proof ours = prove(join_request.token, join_request.job, Side::joiner, hello, nonce);
  send_packet(socket, FrameType::proof, false, ours, {});
}

std::vector<Process> processes_from(const Frame& welcome, const JoinRequest& join_request) {
  std::vector<Process> processes(static_cast<std::size_t>(join_request.size));
  if (welcome.bytes.size() != processes.size() * sizeof(Process)) {
    throw Error(ErrorCode::corrupt, join_request.names.text(0) + " sent a table of another size");
  }
  std::memcpy(processes.data(), welcome.bytes.data(), welcome.bytes.size());
  return processes;
}

[[noreturn]] void give_up(const JoinRequest& join_request, const std::string& obstacle) {
  const RankNames& names = join_request.names;
  std::string message = names.among(join_request.rank, join_request.size) + " found no " +
                        names.text(0) + " of its job after " + waited(join_request);
  if (!obstacle.empty()) {
    message += " (" + obstacle + ")";
  }
  throw Error(ErrorCode::connection, message +
                                         "\nstart all ranks on this host at the same time with the "
                                         "same UNISONO_JOB, or raise UNISONO_CONNECT_TIMEOUT_MS");
}

enum class Answer : std::uint8_t { welcome, hung_up, not_rank_zero };

// Exchanges messages until rank 0 sends its welcome. Without a token, this rank trusts any process
// of this user. With a token, it trusts a process that proves that it knows the token.
Answer converse(int socket, const Hello& hello, const JoinRequest& join_request, Meeting& meeting) {
  const Deadline last = join_request.deadline.later_by_ms(kGraceMs);
  const AwaitSocket wait = [&](short events) {
    if (!wait_for(socket, events, last)) {
      give_up(join_request, "it was reached but did not answer");
    }
  };
  bool proved = join_request.token.empty();
  for (;;) {
    const auto frame = receive_frame(socket, wait);
    if (!frame) {
      return Answer::hung_up;
    }
    if (frame->type == FrameType::welcome && !proved) {
      return Answer::not_rank_zero;
    }
    switch (frame->type) {
      case FrameType::challenge:
        answer_challenge(socket, *frame, hello, join_request);
        proved = true;
        break;
      case FrameType::error:
        throw error_from(*frame);
      case FrameType::welcome:
        meeting.processes = processes_from(*frame, join_request);
        return Answer::welcome;
      default:
        return Answer::not_rank_zero;
    }
  }
}

}  // namespace

std::string waited(const JoinRequest& join_request) {
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - join_request.since;
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", passed.count());
  return text;
}

void say_waiting(const std::string& what) {
  if (!read_flag("UNISONO_QUIET")) {
    std::fprintf(stderr, "unisono: %s\n", what.c_str());
  }
}

Attempt attempt_to_meet(const JoinRequest& join_request) {
  Attempt attempt;
  UniqueFd socket = connect_to(address_of(join_request.job));
  if (!socket) {
    return attempt;
  }
  // The credentials belong to the process that listens. Another user can occupy the name, but
  // learns nothing from this rank.
  const auto listener = credentials_of(socket.get());
  if (!listener || listener->uid != ::geteuid()) {
    attempt.obstacle = "a process of another user occupies its address";
    return attempt;
  }
  UniqueFd process = open_process(listener->pid);
  const int left = join_request.deadline.left_ms();
  const int patience = left < 0 ? 0 : std::max(left, 1);
  const Hello hello =
      make_hello(join_request.rank, join_request.size, !join_request.token.empty(), patience);
  send_hello(socket.get(), hello);  // if rank 0 has hung up already, it has said why
  const Answer answer = converse(socket.get(), hello, join_request, attempt.meeting);
  if (answer == Answer::welcome) {
    attempt.met = true;
    attempt.meeting.links.push_back(std::move(socket));
  } else {
    attempt.obstacle = "process " + std::to_string(listener->pid) +
                       " at its address does not follow the protocol of " +
                       join_request.names.text(0);
    if (answer == Answer::hung_up) {
      attempt.root = std::move(process);
      attempt.root_pid = listener->pid;
    }
  }
  return attempt;
}

Meeting meet_as_other(const JoinRequest& join_request) {
  const RankNames& names = join_request.names;
  constexpr microseconds kLongestPause(20'000);
  microseconds pause(250);
  const Deadline is_silent = Deadline::after_ms(kSilentMs);
  std::optional<Deadline> looks_for_users = Deadline::after_ms(kLookMs);
  AbsenceCheck absence_check(join_request.job, join_request.size);
  bool said = false;
  UniqueFd root;  // a process that hung up; the kernel closes its connections before it has ended
  pid_t root_pid = 0;
  for (std::string obstacle;;) {
    Attempt attempt = attempt_to_meet(join_request);
    if (attempt.met) {
      return std::move(attempt.meeting);
    }
    if (attempt.root) {
      root = std::move(attempt.root);
      root_pid = attempt.root_pid;
    }
    if (has_ended(root, 0)) {
      // Ends the wait as rank 0 does when another rank leaves.
      const std::string how =
          "process " + std::to_string(root_pid) + " " + how_it_ended(root_pid, root);
      throw Error(ErrorCode::connection,
                  names.text(0) + " is gone before all " + std::to_string(join_request.size) +
                      " ranks were there: " +
                      EndReasonReader().end_and_advice({.process = names.number(0), .how = how},
                                                       "look at its last output"),
                  {.rank = names.number(join_request.rank), .peer = names.number(0)});
    }
    if (!attempt.obstacle.empty()) {
      obstacle = attempt.obstacle;
    }
    if (const Absence absence = absence_check.find([](int rank) { return rank == 0; });
        absence.rank == 0) {
      throw Error(ErrorCode::connection, absence.message,
                  {.rank = names.number(join_request.rank), .peer = absence.rank});
    }
    join_request.deadline.throw_if_interrupted();
    if (looks_for_users && (looks_for_users->passed() || join_request.deadline.passed())) {
      looks_for_users.reset();
      obstacle = obstacle.empty() ? find_other_user(join_request.job) : obstacle;
    }
    if (join_request.deadline.passed()) {
      give_up(join_request, obstacle);
    }
    if (!said && is_silent.passed()) {
      said = true;
      say_waiting(names.among(join_request.rank, join_request.size) + " is still waiting for " +
                  names.text(0));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace unisono::comm
