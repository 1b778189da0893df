#include "meeting_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "common/signals.h"

namespace unisono_torch {
namespace {

constexpr std::chrono::microseconds kLongestPause{50'000};  // between polls of the store
// All refusals have one key, so that ranks need not query a key per rank. The value is RANK!TEXT.
constexpr const char* kRefused = "unisono/refused";
constexpr char kEndOfRank = '!';

// Returns another rank's refusal, or "".
std::string refusal_of_another(c10d::Store& store, int rank) {
  if (!store.check({kRefused})) {
    return {};
  }
  std::string refusal = store.get_to_str(kRefused);
  return refusal.starts_with(std::to_string(rank) + kEndOfRank) ? "" : refusal;
}

[[noreturn]] void throw_refusal(const std::string& refusal) {
  const std::size_t end = refusal.find(kEndOfRank);
  throw RefusedByAnother("unisono: rank " + refusal.substr(0, end) + ' ' + refusal.substr(end + 1));
}

void tell(c10d::Store& store, int rank, const std::string& text) {
  try {
    store.set(kRefused, std::to_string(rank) + kEndOfRank + text);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the store has ended
  }
}

// Returns how many leading keys exist. Checks keys in blocks, so that repeated queries stay short
// in large groups.
std::size_t come(c10d::Store& store, const std::vector<std::string>& keys, std::size_t from) {
  constexpr std::size_t kBlock = 64;
  while (from < keys.size()) {
    const std::size_t end = std::min(from + kBlock, keys.size());
    const auto at = [&keys](std::size_t i) {
      return keys.begin() + static_cast<std::ptrdiff_t>(i);
    };
    if (!store.check({at(from), at(end)})) {
      break;
    }
    from = end;
  }
  return from;
}

std::string missing_ranks(c10d::Store& store, const std::vector<std::string>& keys) {
  std::string missing;
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    if (!store.check({keys[rank]})) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  return missing;
}

// Polls, because the store's wait() cannot be interrupted. Each poll is a round trip to the store's
// host; if all ranks have come, two round trips suffice for up to 64 ranks.
void wait_for(c10d::Store& store, int rank, const std::vector<std::string>& keys,
              std::chrono::milliseconds timeout, const std::function<void()>& look,
              const Purpose& purpose) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::chrono::microseconds pause{100};
  std::size_t here = 0;
  for (;;) {
    const bool is_over = std::chrono::steady_clock::now() >= end;
    std::string missing;
    std::string refusal;
    try {
      here = come(store, keys, here);
      if (here < keys.size() && is_over) {
        missing = missing_ranks(store, keys);
      }
      refusal = refusal_of_another(store, rank);
    } catch (const std::exception& error) {
      throw c10::DistBackendError(
          "unisono: the store does not answer which ranks came to " + purpose.what +
          "; check whether the rank that hosts it has ended\n" + error.what());
    }
    if (!refusal.empty()) {
      throw_refusal(refusal);
    }
    if (here == keys.size()) {
      return;
    }
    if (!missing.empty()) {
      const std::string ranks = missing.find(',') == std::string::npos ? "rank " : "ranks ";
      throw c10::DistBackendError("unisono: " + ranks + missing + " did not come to " +
                                  purpose.what + " within " + std::to_string(timeout.count()) +
                                  " ms; " + purpose.question);
    }
    look();
    unisono_signals::throw_if_interrupted();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace

std::vector<std::string> tell_all(c10d::Store& store, const std::string& subject, int rank,
                                  int size, const std::string& mine,
                                  std::chrono::milliseconds timeout,
                                  const std::function<void()>& look, const Purpose& purpose) {
  store.set(subject + std::to_string(rank), mine);
  std::vector<std::string> keys;
  for (int other = 0; other < size; ++other) {
    keys.push_back(subject + std::to_string(other));
  }
  wait_for(store, rank, keys, timeout, look, purpose);
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const std::vector<std::uint8_t>& text : store.multiGet(keys)) {
    texts.emplace_back(text.begin(), text.end());
  }
  return texts;
}

void tell_refusal(c10d::Store& store, int rank, const std::string& why) {
  tell(store, rank, "cannot take part: " + why);
}

void tell_finding(c10d::Store& store, int rank, const std::string& finding) {
  tell(store, rank, "reports: " + finding);
}

void throw_if_refused(c10d::Store& store, int rank) {
  std::string refusal;
  try {
    refusal = refusal_of_another(store, rank);
  } catch (const std::exception&) {
    return;  // then no rank can have refused
  }
  if (!refusal.empty()) {
    throw_refusal(refusal);
  }
}

bool RefusalWatch::has_refused() {
  if (std::chrono::steady_clock::now() < next_) {
    return false;
  }
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  try {
    return !refusal_of_another(*store_, rank_).empty();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace unisono_torch
