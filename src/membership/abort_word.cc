#include "membership/abort_word.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "bootstrap/end_reason.h"
#include "bootstrap/local_host.h"
#include "bootstrap/wire.h"

namespace unisono::comm {
namespace {

constexpr int kWritingMs = 2000;  // for a rank that has begun to write the reason

struct Reason {
  ErrorCode code = ErrorCode::aborted;
  int culprit = -1;
  std::string text = {};
};

// Returns a text for other hosts such as "4 2 rank 2 is gone ...": the code, the culprit, and the
// reason.
std::string to_text(ErrorCode code, int culprit, std::string_view text) {
  return std::to_string(static_cast<int>(code)) + " " + std::to_string(culprit) + " " +
         std::string(text);
}

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

}  // namespace

void tell_hosts_of_abort(transport::Network& network, ErrorCode code, int culprit,
                         std::string_view text) noexcept {
  try {
    network.abort(to_text(code, culprit, text));
  } catch (const std::bad_alloc&) {
    network.abort({});  // no memory even for the text
  }
  network.flush();
}

AbortWord::AbortWord(LocalHost& host, transport::Network* network, int rank, int ranks)
    : host_(host),
      network_(network),
      record_(host.memory().abort_record()),
      rank_(rank),
      ranks_(ranks) {}

bool AbortWord::record(ErrorCode code, int culprit, int reporter, std::string_view text) noexcept {
  std::uint32_t none = 0;
  if (!record_.state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) {
    return false;
  }
  record_.code = static_cast<std::uint32_t>(code);
  record_.rank = culprit;
  record_.reporter = reporter;
  const std::size_t length = std::min(text.size(), sizeof(record_.text) - 1);
  std::memcpy(record_.text, text.data(), length);
  record_.text[length] = '\0';
  record_.state.store(2, std::memory_order_release);
  tell_observer();
  host_.event_counts().notify_all();
  if (network_ != nullptr) {
    network_->wake();
  }
  return true;
}

void AbortWord::tell_observer() const noexcept {
  if (observer_ != nullptr && record_.state.load(std::memory_order_acquire) == 2) {
    observer_(record_);
  }
}

std::optional<int> AbortWord::culprit() const noexcept {
  return record_.state.load(std::memory_order_acquire) == 2 ? std::optional(record_.rank)
                                                            : std::nullopt;
}

void AbortWord::raise(ErrorCode code, int culprit, const std::string& text) noexcept {
  if (record(code, culprit, rank_, text) && network_ != nullptr) {
    tell_hosts_of_abort(*network_, code, culprit, text);
  }
}

void AbortWord::raise(const std::exception& error) noexcept {
  try {
    const std::string who = "rank " + std::to_string(rank_) + ": ";
    if (const auto* ours = dynamic_cast<const Error*>(&error)) {
      raise(ours->code(), rank_, who + std::string(ours->message()));
    } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
      raise(ErrorCode::resource, rank_,
            who + "out of memory\ncheck the limits on memory (ulimit -v, cgroup)");
    } else {
      raise(ErrorCode::internal, rank_, who + error.what());
    }
  } catch (const std::bad_alloc&) {
    raise(ErrorCode::resource, rank_, {});  // no memory even for the text
  }
}

void AbortWord::pass_on() noexcept {
  if (network_ != nullptr && culprit()) {
    tell_hosts_of_abort(*network_, static_cast<ErrorCode>(record_.code), record_.rank,
                        record_.text);
  }
}

void AbortWord::take(const transport::Network::Abort& abort) {
  const Reason reason = parse_reason(abort.reason, ranks_);
  record(reason.code, reason.culprit, abort.peer, reason.text);
}

// If the record is incomplete, the rank that was writing it has died.
Error AbortWord::read(ErrorContext context) const {
  context.rank = rank_;
  if (record_.state.load(std::memory_order_acquire) != 2) {
    return {ErrorCode::peer_lost, "a rank died while it reported an error\nrestart the job",
            std::move(context)};
  }
  context.peer = record_.rank;
  return {static_cast<ErrorCode>(record_.code), record_.text, std::move(context)};
}

Error AbortWord::reason(ErrorContext context) const {
  // The writer may have claimed the record and not completed it yet. If it died in between, reports
  // that.
  for (int ms = 0; record_.state.load(std::memory_order_acquire) != 2 && ms < kWritingMs; ++ms) {
    usleep(1000);
  }
  tell_observer();
  return read(std::move(context));
}

void AbortWord::throw_reason(ErrorContext context) const {
  throw_to_program(reason(std::move(context)));
}

void AbortWord::throw_to_program(const Error& error) const {
  note_told();
  await_signal_of_launcher(error.message());
  throw error;
}

std::optional<Error> AbortWord::complete() const {
  return record_.state.load(std::memory_order_acquire) == 2 ? std::optional(read({}))
                                                            : std::nullopt;
}

std::optional<Error> AbortWord::failure() {
  const std::uint32_t state = record_.state.load(std::memory_order_acquire);
  if (state == 1) {  // as in throw_reason(), but the caller comes again
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    std::int64_t never = 0;
    const bool is_first = unwritten_since_ms_.compare_exchange_strong(never, now_ms);
    return is_first || now_ms - never < kWritingMs ? std::nullopt : std::optional(read({}));
  }
  if (state == 0) {
    return std::nullopt;
  }
  note_told();
  return read({});
}

}  // namespace unisono::comm
