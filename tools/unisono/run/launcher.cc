#include "run/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/as_size.h"
#include "bootstrap/end_reason.h"
#include "bootstrap/job_log.h"
#include "cli/failure.h"
#include "run/spawn.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

using namespace std::chrono_literals;

// The time for the other ranks to print their own errors after the first failure. It is longer on
// several hosts, because each side of a split network notices the split separately, within four
// seconds.
constexpr auto kGrace = 2s;
constexpr auto kGraceOfHosts = 5s;
constexpr auto kTermination = 1s;
constexpr auto kTick = 200ms;

// Returns true if stdin is a terminal whose foreground process group is the launcher's. Rank 0 can
// read it only from this group.
bool stdin_is_our_terminal() {
  return ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

// Returns true if a signal that no launcher sends killed the process.
bool is_crash(const siginfo_t& info) {
  constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  return info.si_code != CLD_EXITED &&
         std::find(kCrashes.begin(), kCrashes.end(), info.si_status) != kCrashes.end();
}

}  // namespace

Launcher::Launcher(LaunchOptions options, const Console& console)
    : options_(std::move(options)),
      console_(console),
      output_(options_.output),
      log_(options_.job, options_.ranks) {
  result_.ends.resize(as_size(options_.ranks));
  own_group_.assign(as_size(options_.ranks), true);
}

Launcher::~Launcher() {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const ProcessEnd& end = result_.ends[as_size(rank)];
    if (end.pid > 0 && !end.ended) {
      ::kill(own_group_[as_size(rank)] ? -end.pid : end.pid, SIGKILL);
      ::waitpid(end.pid, nullptr, 0);
    }
  }
  for (const Lane& lane : lanes_) {
    if (lane.fd >= 0) {
      ::close(lane.fd);
    }
  }
  if (signal_fd_ >= 0) {
    ::close(signal_fd_);
  }
}

void Launcher::start_ranks() {
  const std::vector<int> cpus = allowed_cpus();
  for (int rank = 0; rank < options_.ranks; ++rank) {
    SpawnOptions spawn_options{.program = options_.program,
                               .environment = options_.environment,
                               .cpus = {},
                               .own_group = true,
                               .keeps_stdin = rank == 0};
    if (options_.bind) {
      spawn_options.cpus = share_of_cpus(cpus, rank, options_.ranks, options_.threads);
    }
    UniqueFd input;
    if (options_.remote.empty()) {
      spawn_options.environment.insert(
          spawn_options.environment.begin(),
          {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank)});
      if (!options_.rank_environment.empty()) {
        spawn_options.environment.push_back(options_.rank_environment[as_size(rank)]);
      }
      spawn_options.environment.push_back(log_.environment());
    } else {
      const RemoteRank& remote = options_.remote[as_size(rank)];
      spawn_options.program = remote.program;
      spawn_options.environment.clear();
      spawn_options.cpus.clear();
      inputs_.emplace_back(input).add(remote.script);
      remote_logs_.emplace_back(log_mark(options_.job));
      spawn_options.input = input.get();
    }
    spawn_options.own_group = rank != 0 || !stdin_is_our_terminal();
    const Spawned spawned = spawn(spawn_options);
    result_.ends[as_size(rank)].pid = spawned.pid;
    own_group_[as_size(rank)] = spawn_options.own_group;
    if (spawn_options.own_group) {
      guardian_->watch(spawned.pid);
    }
    lanes_[as_size(rank) * 2].fd = spawned.out;
    lanes_[as_size(rank) * 2 + 1].fd = spawned.err;
    if (console_.verbose()) {
      console_.note(fmt::format("rank {}: pid {}{}", rank, spawned.pid,
                                spawn_options.cpus.empty()
                                    ? ""
                                    : fmt::format(", CPU {}", fmt::join(spawn_options.cpus, ","))));
    }
  }
}

JobResult Launcher::run() {
  guardian_.emplace();
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
    ::sigaddset(&signals, signal);
  }
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  result_.start = std::chrono::steady_clock::now();
  for (int rank = 0; rank < options_.ranks; ++rank) {
    lanes_.push_back({.rank = rank, .stream = Stream::out});
    lanes_.push_back({.rank = rank, .stream = Stream::err});
  }
  logs_.open(options_.log_dir, options_.ranks);
  start_ranks();
  while (!all_ended()) {
    std::vector<pollfd> polls = {{.fd = signal_fd_, .events = POLLIN, .revents = 0}};
    for (const Lane& lane : lanes_) {
      polls.push_back({.fd = lane.fd, .events = POLLIN, .revents = 0});  // poll() ignores -1
    }
    for (const RemoteInput& input : inputs_) {
      polls.push_back({.fd = input.has_more() ? input.fd() : -1, .events = POLLOUT, .revents = 0});
    }
    ::poll(polls.data(), polls.size(), poll_timeout_ms(std::chrono::steady_clock::now()));
    const Time now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (polls[i + 1].revents != 0) {
        read_lane(lanes_[i], now);
      }
    }
    for (RemoteInput& input : inputs_) {
      if (input.has_more()) {
        input.write();
      }
    }
    read_signals(now);
    reap(now);
    check_clock(now);
    output_.flush_due(now);
    if (options_.on_tick) {
      options_.on_tick();
    }
  }
  options_.spared.push_back(guardian_->pid());
  kill_orphans(options_.spared);
  guardian_.reset();
  drain();
  result_.lost_logs = logs_.tell_lost();
  const comm::JobLog log = log_.read();
  result_.never_joined = log.missed < options_.ranks ? log.missed : -1;
  result_.failures = log.failures;
  choose_first_failure();  // after all reports of the ranks have been read
  if (options_.chaos != nullptr) {
    const std::vector<Chaos::ScheduledFault> left = options_.chaos->left();
    result_.missed_blows.insert(result_.missed_blows.end(), left.begin(), left.end());
  }
  result_.went_on = options_.keep_going && result_.first_failure >= 0 && any_ended_well(result_);
  result_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - result_.start).count();
  return result_;
}

int Launcher::poll_timeout_ms(Time now) const {
  std::optional<Time> next = output_.next_due();
  const auto sooner = [&next](Time time) { next = next ? std::min(*next, time) : time; };
  if (stage_ != Stage::running) {
    sooner(stage_end_);
  } else if (options_.timeout_s > 0) {
    sooner(result_.start + std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::duration<double>(options_.timeout_s)));
  }
  if (stage_ <= Stage::grace && options_.chaos != nullptr && options_.chaos->next()) {
    sooner(result_.start + *options_.chaos->next());
  }
  if (options_.on_tick) {
    sooner(now + kTick);
  }
  if (!next) {
    return -1;
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void Launcher::read_lane(Lane& lane, Time now) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(lane.fd, buffer.data(), buffer.size());
  if (got > 0) {
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    std::string shown;
    if (lane.stream == Stream::err && !remote_logs_.empty()) {
      shown = remote_logs_[as_size(lane.rank)].take(bytes);
      bytes = shown;
      log_.add_remote(remote_logs_[as_size(lane.rank)].lines());
    }
    show(lane, bytes, now);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    if (lane.stream == Stream::err && !remote_logs_.empty()) {
      show(lane, remote_logs_[as_size(lane.rank)].finish(), now);
    }
    output_.finish(lane.rank, lane.stream, now);
    ::close(lane.fd);
    lane.fd = -1;
  }
}

void Launcher::show(const Lane& lane, std::string_view bytes, Time now) {
  output_.add(lane.rank, lane.stream, bytes, now);
  logs_.write(lane.rank, lane.stream, bytes);
}

void Launcher::read_signals(Time now) {
  signalfd_siginfo info = {};
  while (::read(signal_fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      continue;
    }
    const bool again = result_.launcher_signal != 0;
    if (!again) {
      tell_of_stop();
      result_.launcher_signal = signal;
      tell_of_failure();
      tell_why(fmt::format("{}, because the launcher got {} itself", comm::kEndedByLauncher,
                           signal_name(signal)),
               "the sender of that signal stopped the job");
    }
    signal_ranks(again ? SIGKILL : signal == SIGINT ? SIGINT : SIGTERM, info.ssi_code == SI_KERNEL);
    stage_ = again ? Stage::killing : Stage::terminating;
    stage_end_ = now + kGrace;
  }
}

// A rank on another host gets the signal from its shell there, which then sends the rank's output
// and its job log. So the program that connects to the host is ended only when ranks are killed.
// Background processes of a shell ignore SIGINT.
void Launcher::signal_ranks(int signal, bool from_terminal) {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const ProcessEnd& end = result_.ends[as_size(rank)];
    const bool grouped = own_group_[as_size(rank)];
    if (!inputs_.empty() && signal != SIGKILL) {
      inputs_[as_size(rank)].add("TERM\n");
      continue;
    }
    // The terminal has already sent the signal to our own group.
    if (end.pid > 0 && !end.ended && (grouped || !from_terminal)) {
      ::kill(grouped ? -end.pid : end.pid, signal);
    }
  }
}

void Launcher::reap(Time now) {
  std::vector<int> batch;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    ProcessEnd& end = result_.ends[as_size(rank)];
    siginfo_t info = {};
    if (end.ended ||
        ::waitid(P_PID, static_cast<id_t>(end.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      continue;
    }
    // Kills its group now, before another process can get its number.
    if (own_group_[as_size(rank)]) {
      ::kill(-end.pid, SIGKILL);
      guardian_->forget(end.pid);
    }
    ::waitpid(end.pid, nullptr, 0);
    end.ended = true;
    end.when = now;
    // The terminal's signal that ended the rank may also have been sent to us.
    read_signals(now);
    end.by_launcher = stage_ >= Stage::terminating && !is_crash(info);
    (info.si_code == CLD_EXITED ? end.exit_code : end.signal) = info.si_status;
    if (!end.by_launcher) {
      note_end(rank);
    }
    if (end.failed() && !end.killed_by_chaos()) {
      batch.push_back(rank);
    }
  }
  if (!batch.empty() && stage_ == Stage::running) {
    choose_first_failure();
    if (!options_.keep_going) {
      stage_ = Stage::grace;
      stage_end_ = now + (options_.remote.empty() ? kGrace : kGraceOfHosts);
    }
  }
}

// Forwards the end of a rank to logs on other hosts, where each rank has its own log. Rank 0 waits
// for all ranks and all ranks wait for rank 0, so they need every end; all ranks need the first
// failure.
void Launcher::note_end(int rank) {
  const ProcessEnd& end = result_.ends[as_size(rank)];
  const std::string how =
      end.signal != 0 ? end_phrase(end) : fmt::format("exited with code {}", end.exit_code);
  log_.write_end(rank, how);
  for (std::size_t to = 0; to < inputs_.size(); ++to) {
    if (rank == 0 || to == 0 || (end.failed() && result_.first_failure < 0)) {
      inputs_[to].add(comm::end_line(rank, how));
    }
  }
}

// Chooses the first rank that failed, or the rank that this rank names as the cause: a process with
// much memory, or with a core dump, ends later than the ranks that end because of its death. The
// named rank may in turn name another rank, even if the launcher ended it. If ranks were found dead
// at the same time, a signal takes precedence over an exit code, and both take precedence over the
// exit code for "could not run, a peer is gone".
void Launcher::choose_first_failure() {
  const auto has_failed = [this](int rank) {
    if (rank < 0 || rank >= options_.ranks) {
      return false;
    }
    const ProcessEnd& end = result_.ends[as_size(rank)];
    return end.failed() && !end.by_launcher && !end.killed_by_chaos();
  };
  const auto place = [this](int rank) {
    const ProcessEnd& end = result_.ends[as_size(rank)];
    return std::pair(end.when, end.signal != 0 ? 0 : end.exit_code == kCouldNotRun ? 2 : 1);
  };
  int first = -1;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (has_failed(rank) && (first < 0 || place(rank) < place(first))) {
      first = rank;
    }
  }
  const std::map<int, comm::JobFailure> failures = log_.read().failures;
  int cause = first;
  std::set<int> passed;
  for (auto said = failures.find(cause);
       said != failures.end() && said->second.culprit >= 0 &&
       said->second.culprit < options_.ranks && passed.insert(cause).second;
       said = failures.find(cause)) {
    cause = said->second.culprit;
    first = has_failed(cause) ? cause : first;
  }
  result_.first_failure = first;
  result_.cause = cause;
}

void Launcher::check_clock(Time now) {
  if (stage_ <= Stage::grace) {
    strike(now);
  }
  if (stage_ == Stage::running) {
    const double seconds = std::chrono::duration<double>(now - result_.start).count();
    if (options_.timeout_s > 0 && seconds >= options_.timeout_s && !all_ended()) {
      result_.timed_out = true;
      for (int rank = 0; rank < options_.ranks; ++rank) {
        if (!result_.ends[as_size(rank)].ended) {
          result_.unfinished.push_back(rank);
        }
      }
      tell_of_stop();
      tell_why(fmt::format("{}, because --timeout is {:g} s", comm::kEndedByLauncher,
                           options_.timeout_s),
               "below, the launcher names the ranks that the others waited for");
      signal_ranks(SIGTERM, false);
      stage_ = Stage::terminating;
      stage_end_ = now + kTermination;
    }
    return;
  }
  if (now < stage_end_) {
    return;
  }
  tell_of_failure();
  signal_ranks(stage_ == Stage::grace ? SIGTERM : SIGKILL, false);
  stage_ = stage_ == Stage::grace ? Stage::terminating : Stage::killing;
  stage_end_ = now + kTermination;
}

void Launcher::strike(Time now) {
  if (options_.chaos == nullptr) {
    return;
  }
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now - result_.start);
  for (const Chaos::ScheduledFault& blow : options_.chaos->due(since)) {
    ProcessEnd& end = result_.ends[as_size(blow.rank)];
    if (end.ended) {
      if (blow.signal != SIGCONT) {
        result_.missed_blows.push_back(blow);
      }
      continue;
    }
    if (blow.signal == 0) {
      options_.chaos->reset(blow.rank);
      continue;
    }
    const char* const name = ::sigabbrev_np(blow.signal);
    console_.note(fmt::format("chaos: rank {} gets SIG{}, {:.1f} s after the start", blow.rank,
                              name, static_cast<double>(since.count()) / 1000));
    if (blow.signal == SIGKILL && !end.by_chaos) {
      end.by_chaos = true;
      end.struck = now;
    }
    if (!options_.remote.empty()) {
      // Sends the name to the rank's shell: see hosts.cc.
      inputs_[as_size(blow.rank)].add(fmt::format("{}\n", name));
    } else {
      ::kill(own_group_[as_size(blow.rank)] ? -end.pid : end.pid, blow.signal);
    }
  }
}

void Launcher::tell_of_stop() {
  if (options_.on_stop && stage_ == Stage::running) {
    options_.on_stop();
  }
}

void Launcher::tell_of_failure() {
  if (stage_ == Stage::running) {
    return;
  }
  choose_first_failure();
  if (const int rank = result_.first_failure; rank >= 0) {
    tell_why(comm::ended_after(rank) + end_phrase(result_.ends[as_size(rank)]),
             "look at the last output of that process");
  }
}

void Launcher::tell_why(const std::string& reason, const std::string& advice) {
  const std::string lines = log_.write_reason(reason, advice);
  for (RemoteInput& input : inputs_) {
    input.add(lines);
  }
}

bool Launcher::all_ended() const {
  return std::all_of(result_.ends.begin(), result_.ends.end(),
                     [](const ProcessEnd& end) { return end.ended; });
}

// Reads the rest of the pipes. All writers have ended, so reading does not wait.
void Launcher::drain() {
  const Time now = std::chrono::steady_clock::now();
  for (Lane& lane : lanes_) {
    for (int reads = 0; lane.fd >= 0 && reads < 64; ++reads) {
      read_lane(lane, now);
    }
    output_.finish(lane.rank, lane.stream, now);
  }
  output_.flush_all();
}

}  // namespace unisono::cli
