#include "comm/accounts.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <string_view>

#include "base/collectives.h"
#include "diagnose/flight_recorder.h"

namespace unisono::comm {
namespace {

constexpr double kNs = 1e-9;

std::string_view name_of(int kind) {
  switch (kind) {
    case Accounts::kSend:
      return "send";
    case Accounts::kRecv:
      return "recv";
    default:
      return to_string(static_cast<Collective>(kind));
  }
}

double seconds(const std::atomic<std::uint64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) * kNs;
}

}  // namespace

Accounts::~Accounts() {
  for (std::atomic<Account*>& account : accounts_) {
    delete account.load(std::memory_order_relaxed);
  }
}

std::int64_t Accounts::now_ns() noexcept {
  return flight_clock_ns();
}

Accounts::Account* Accounts::open(int kind) {
  auto account = std::make_unique<Account>();
  account->waited_for_ns = std::make_unique<Count[]>(members_.size());
  if (by_rank_ns_ == nullptr) {
    by_rank_ns_ = std::make_unique<std::uint64_t[]>(members_.size());
  }
  accounts_[kind].store(account.get(), std::memory_order_release);
  return account.release();
}

void Accounts::note(int missing) noexcept {
  if (idle_polls_ != noticed_ && missing == missing_) {
    return;
  }
  if (idle_polls_ == noticed_) {
    since_ns_ = now_ns();
  } else {
    charge();
  }
  missing_ = missing;
}

void Accounts::end_wait() noexcept {
  if (idle_polls_ >= noticed_) {
    charge();
  }
  idle_polls_ = 0;
}

// What was waited since the last charge.
void Accounts::charge() noexcept {
  if (current_ == nullptr) {
    return;
  }
  const std::int64_t now = now_ns();
  const auto waited = static_cast<std::uint64_t>(std::max<std::int64_t>(now - since_ns_, 0));
  since_ns_ = now;
  waited_ns_ += waited;
  add(current_->waited_ns, waited);
  shown_.waited_ns.fetch_add(waited, std::memory_order_relaxed);  // transfers have another account
  const auto rank = static_cast<std::size_t>(missing_);
  if (missing_ < 0 || rank >= members_.size()) {
    return;
  }
  add(current_->waited_for_ns[rank], waited);
  by_rank_ns_[rank] += waited;
  if (by_rank_ns_[rank] >= most_ns_) {
    most_ns_ = by_rank_ns_[rank];
    shown_.most_for.store(members_[rank] + 1, std::memory_order_relaxed);
  }
}

void Accounts::settle() noexcept {
  if (current_ == nullptr) {
    return;
  }
  const std::uint64_t waited_us = waited_ns_ / 1000;
  if (waited_us != 0) {
    const int bucket =
        std::min<int>(static_cast<int>(std::bit_width(waited_us)), Statistics::kSkewBuckets - 1);
    add(current_->skew[bucket], 1);
  }
  if (begun_ns_ != 0) {
    const auto lasted = static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns() - begun_ns_, 0));
    const std::uint64_t moving = lasted - std::min(lasted, waited_ns_);
    add(is_long_ ? current_->long_ns : current_->short_ns, moving);
    if (!is_long_) {
      add(current_->short_timed, 1);
    }
  }
  waited_ns_ = 0;
  begun_ns_ = 0;
}

void Accounts::read(Statistics& statistics) const {
  for (int kind = 0; kind < kKinds; ++kind) {
    const Account* const account = accounts_[kind].load(std::memory_order_acquire);
    if (account == nullptr) {
      continue;
    }
    Statistics::Row row{.what = std::string(name_of(kind)),
                        .calls = account->calls.load(std::memory_order_relaxed),
                        .bytes = account->bytes.load(std::memory_order_relaxed),
                        .moving_s = seconds(account->long_ns),
                        .waiting_s = seconds(account->waited_ns),
                        .waiting_for_s = std::vector<double>(members_.size())};
    const auto timed = account->short_timed.load(std::memory_order_relaxed);
    if (timed != 0) {
      row.moving_s += seconds(account->short_ns) *
                      static_cast<double>(account->short_calls.load(std::memory_order_relaxed)) /
                      static_cast<double>(timed);
    }
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      row.waiting_for_s[rank] = seconds(account->waited_for_ns[rank]);
    }
    for (std::size_t k = 1; k < row.skew.size(); ++k) {
      row.skew[k] = account->skew[k].load(std::memory_order_relaxed);
    }
    const std::uint64_t longer =
        std::accumulate(row.skew.begin(), row.skew.end(), std::uint64_t{0});
    row.skew[0] = row.calls - std::min(row.calls, longer);
    statistics.rows.push_back(std::move(row));
  }
}

}  // namespace unisono::comm

namespace unisono {

std::string Statistics::text() const {
  std::string text =
      "call                  calls          bytes    moving s   waiting s  mostly for\n";
  for (const Row& row : rows) {
    char line[160];
    std::snprintf(line, sizeof(line), "%-16s %10" PRIu64 " %14" PRIu64 " %11.6f %11.6f  ",
                  row.what.c_str(), row.calls, row.bytes, row.moving_s, row.waiting_s);
    text += line;
    const auto most = std::max_element(row.waiting_for_s.begin(), row.waiting_for_s.end());
    if (most == row.waiting_for_s.end() || *most <= 0) {
      text += "-\n";
      continue;
    }
    std::snprintf(line, sizeof(line), "rank %zu (%.0f %%)\n",
                  static_cast<std::size_t>(most - row.waiting_for_s.begin()),
                  100 * *most / row.waiting_s);
    text += line;
  }
  return text;
}

}  // namespace unisono
