// How a world ends: who is first to say why, how all others hear of it, who is found dead.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "bootstrap/process.h"
#include "bootstrap/wire.h"
#include "comm/world.h"

namespace unisono::comm {
namespace {

constexpr int kWritingMs = 2000;  // for who has begun to say why the world ends

// "4 2 rank 2 is gone ...": the code, the culprit, the text, for other hosts.
std::string to_reason(ErrorCode code, int culprit, const std::string& text) {
  return std::to_string(static_cast<int>(code)) + " " + std::to_string(culprit) + " " + text;
}

struct Reason {
  ErrorCode code = ErrorCode::aborted;
  int culprit = -1;
  std::string text = {};
};

Reason parse_reason(const std::string& reason, int ranks) {
  int code = 0;
  Reason parsed;
  const char* const end = reason.data() + reason.size();
  const auto [behind_code, wrong_code] = std::from_chars(reason.data(), end, code);
  if (wrong_code != std::errc() || behind_code == end || code < 0 ||
      code > static_cast<int>(kLastErrorCode)) {
    return {.text = reason};
  }
  const auto [behind, wrong] = std::from_chars(behind_code + 1, end, parsed.culprit);
  if (wrong != std::errc() || behind == end || parsed.culprit < -1 || parsed.culprit >= ranks) {
    return {.text = reason};
  }
  parsed.code = static_cast<ErrorCode>(code);
  parsed.text.assign(behind + 1, end);
  return parsed;
}

constexpr std::string_view kAdvice =
    "look at its last output; the other ranks cannot go on without it";

// What came was not what the peer sent, or should have.
bool is_damage(tcp::Reason reason) {
  switch (reason) {
    case tcp::Reason::bad_frame:
    case tcp::Reason::protocol:
    case tcp::Reason::damaged:
    case tcp::Reason::tls:
      return true;
    default:
      return false;
  }
}

// Also with something in it that was not read.
bool is_closing(const tcp::Failure& failure) {
  return failure.reason == tcp::Reason::closed ||
         (failure.reason == tcp::Reason::reset &&
          (failure.error == ECONNRESET || failure.error == EPIPE));
}

}  // namespace

bool World::record_abort(ErrorCode code, int culprit, int reporter,
                         const std::string& text) noexcept {
  std::uint32_t none = 0;
  if (!record_->state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) {
    return false;
  }
  record_->code = static_cast<std::uint32_t>(code);
  record_->rank = culprit;
  record_->reporter = reporter;
  const std::size_t length = std::min(text.size(), sizeof(record_->text) - 1);
  std::memcpy(record_->text, text.data(), length);
  record_->text[length] = '\0';
  record_->state.store(2, std::memory_order_release);
  note_abort();
  bells_->ring_all();
  if (connections_ != nullptr) {
    connections_->wake();
  }
  return true;
}

// For whoever reads the recording later.
void World::note_abort() const noexcept {
  if (recorder_ != nullptr && record_->state.load(std::memory_order_acquire) == 2) {
    recorder_->note_abort(static_cast<ErrorCode>(record_->code), record_->rank, record_->reporter,
                          record_->text);
  }
}

void World::raise(ErrorCode code, int culprit, const std::string& text) noexcept {
  if (record_abort(code, culprit, rank(), text) && connections_ != nullptr) {
    abort_across(code, culprit, text);
  }
}

void World::abort_across(ErrorCode code, int culprit, const std::string& text) noexcept {
  try {
    connections_->abort(to_reason(code, culprit, text));
  } catch (const std::bad_alloc&) {
    connections_->abort({});  // not even for the text
  }
  connections_->flush();
}

// Ranks of other hosts may be in their world already: why this one will never be in it.
void World::tell_of_no_world(const Error& error) noexcept {
  local_->tell(error);
  if (connections_ == nullptr) {
    return;
  }
  const int culprit = error.context().peer >= 0 ? error.context().peer : rank();
  const std::string who = culprit == rank() ? "rank " + std::to_string(rank()) + ": " : "";
  abort_across(error.code(), culprit, who + text_of(error));
  take_leave(true, culprit);
}

void World::raise(const std::exception& error) noexcept {
  try {
    const std::string who = "rank " + std::to_string(rank()) + ": ";
    if (const auto* ours = dynamic_cast<const Error*>(&error)) {
      raise(ours->code(), rank(), who + text_of(*ours));
    } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
      raise(ErrorCode::resource, rank(),
            who + "out of memory\ncheck the limits on memory (ulimit -v, cgroup)");
    } else {
      raise(ErrorCode::internal, rank(), who + error.what());
    }
  } catch (const std::bad_alloc&) {
    raise(ErrorCode::resource, rank(), {});  // not even for the text
  }
}

// What the record says; or, where it is not complete, that who was to write it has died.
Error World::read_abort(ErrorContext context) const {
  context.rank = rank();
  if (record_->state.load(std::memory_order_acquire) != 2) {
    return {ErrorCode::peer_lost, "a rank died while it reported an error\nstart the job again",
            std::move(context)};
  }
  context.peer = record_->rank;
  return {static_cast<ErrorCode>(record_->code), record_->text, std::move(context)};
}

void World::throw_abort(ErrorContext context) const {
  // The writer may be between claiming the record and completing it; if it died there, say so.
  for (int ms = 0; record_->state.load(std::memory_order_acquire) != 2 && ms < kWritingMs; ++ms) {
    usleep(1000);
  }
  note_abort();
  throw read_abort(std::move(context));
}

std::optional<Error> World::failure() {
  if (!aborted()) {
    look_for_deaths();
  }
  const std::uint32_t state = record_->state.load(std::memory_order_acquire);
  if (state == 1) {  // as in throw_abort(), but whoever asks comes again
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    std::int64_t never = 0;
    const bool is_first = unwritten_since_ms_.compare_exchange_strong(never, now_ms);
    return is_first || now_ms - never < kWritingMs ? std::nullopt : std::optional(read_abort({}));
  }
  return state == 0 ? std::nullopt : std::optional(read_abort({}));
}

void World::ask_whether_to_go_on() noexcept {
  if (options_.interrupted != nullptr && options_.interrupted()) {
    raise(ErrorCode::aborted, rank_, "rank " + std::to_string(rank_) + " was interrupted");
  }
}

pid_t World::stopped_process(int rank) const {
  if (!hosts_.is_here(rank) || same_process_as(rank)) {
    return 0;
  }
  const pid_t pid = local_->peer(hosts_.local(rank)).pid;
  return pid > 0 && is_stopped(pid) ? pid : 0;
}

void World::look_for_deaths() noexcept {
  const std::unique_lock lock(local_use_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return;
  }
  try {
    look_for_local_death();
  } catch (const std::exception& error) {
    raise(error);
  }
  listen_to_others();
}

Life& World::life(int local_rank) const noexcept {
  return reinterpret_cast<Life*>(host_.world + WorldLayout(local_->size()).lives)[local_rank];
}

// Its process has begun to end. It closes its connections later, when its memory is gone.
bool World::is_ending(int local_rank) noexcept {
  return life(local_rank).has_ended() &&
         bells_->bell(local_rank).left.load(std::memory_order_acquire) == 0;
}

std::optional<Death> World::find_ending() {
  for (int rank = 0; rank < local_->size(); ++rank) {
    if (is_ending(rank)) {
      std::string how = how_it_is_ending(local_->peer(rank).pid);
      if (!how.empty()) {
        return Death{rank, std::move(how)};
      }
    }
  }
  return std::nullopt;
}

int World::first_rank(int rank) const {
  const auto& first_ranks = origin_.first_ranks;
  return first_ranks.empty() ? rank : first_ranks[static_cast<std::size_t>(rank)];
}

void World::look_for_local_death() {
  auto death = find_ending();
  if (!death) {
    death = local_->find_death();
  }
  if (death) {
    const int rank = hosts_.here()[static_cast<std::size_t>(death->rank)];
    raise(ErrorCode::peer_lost, rank,
          "rank " + std::to_string(rank) + " (pid " +
              std::to_string(local_->peer(death->rank).pid) + ") is gone: " +
              launcher_words_.end_and_advice(
                  {.process = first_rank(rank), .how = std::move(death->how)}, kAdvice));
  }
}

// What the connections know: why another rank ends the world, or that one is no more.
void World::listen_to_others() noexcept {
  if (connections_ == nullptr) {
    return;
  }
  connections_->progress();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  connections_->look_at_streams(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  const int troubles = connections_->troubles();
  if (troubles == troubles_seen_.exchange(troubles, std::memory_order_relaxed) || aborted()) {
    return;
  }
  try {
    if (const auto abort = connections_->aborted()) {
      const Reason reason = parse_reason(abort->reason, size());
      record_abort(reason.code, reason.culprit, abort->peer, reason.text);
    } else if (const tcp::Failure failure = connections_->failure()) {
      raise(is_damage(failure.reason) ? ErrorCode::corrupt : ErrorCode::peer_lost, failure.peer,
            "rank " + std::to_string(failure.peer) + " is gone: " +
                launcher_words_.end_and_advice({.process = first_rank(failure.peer),
                                                .how = tcp::describe(failure),
                                                .by_its_closing = is_closing(failure)},
                                               kAdvice));
    }
  } catch (const std::exception& error) {
    raise(error);
  }
}

}  // namespace unisono::comm
