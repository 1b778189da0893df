#include "comm/accounts.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "diagnose/flight_recorder.h"

namespace unisono::comm {

Accounts::~Accounts() {
  for (std::atomic<CallTotals*>& totals : totals_) {
    delete totals.load(std::memory_order_relaxed);
  }
}

CallTotals* Accounts::open(int kind) {
  auto totals = std::make_unique<CallTotals>(shown_.calls[kind], members_.size());
  if (by_rank_ns_ == nullptr) {
    by_rank_ns_ = std::make_unique<std::uint64_t[]>(members_.size());
  }
  totals_[kind].store(totals.get(), std::memory_order_release);
  return totals.release();
}

void Accounts::note(int missing, std::int64_t now_ns) noexcept {
  if (idle_polls_ != noticed_ && missing == missing_) {
    return;
  }
  if (idle_polls_ == noticed_) {
    since_ns_ = now_ns;
  } else {
    charge(now_ns);
  }
  missing_ = missing;
  if (current_ != nullptr) {
    current_->begin_wait(now_ns);
  }
}

void Accounts::end_wait(std::int64_t now_ns) noexcept {
  if (idle_polls_ >= noticed_) {
    charge(now_ns);
  }
  idle_polls_ = 0;
}

// Returns the time waited since the last charge.
void Accounts::charge(std::int64_t now_ns) noexcept {
  if (current_ == nullptr) {
    return;
  }
  const auto waited = static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - since_ns_, 0));
  since_ns_ = now_ns;
  waited_ns_ += waited;
  const auto rank = static_cast<std::size_t>(missing_);  // out of range if unknown
  current_->add_wait(rank, waited);
  if (rank >= members_.size()) {
    return;
  }
  if (shown_.waited_for[rank] != nullptr) {  // transfers have another account
    shown_.waited_for[rank]->fetch_add(waited, std::memory_order_relaxed);
  }
  by_rank_ns_[rank] += waited;
  if (by_rank_ns_[rank] >= most_ns_) {
    most_ns_ = by_rank_ns_[rank];
    shown_.most_for->store(members_[rank] + 1, std::memory_order_relaxed);
  }
}

void Accounts::settle() noexcept {
  if (current_ == nullptr) {
    return;
  }
  current_->add_skew(waited_ns_);
  if (begun_ns_ != 0) {
    const auto lasted =
        static_cast<std::uint64_t>(std::max<std::int64_t>(flight_clock_ns() - begun_ns_, 0));
    current_->add_moving(is_long_, lasted - std::min(lasted, waited_ns_));
  }
  waited_ns_ = 0;
  begun_ns_ = 0;
}

void Accounts::read(Statistics& statistics) const {
  for (int kind = 0; kind < kCallKinds; ++kind) {
    const CallTotals* const totals = totals_[kind].load(std::memory_order_acquire);
    if (totals != nullptr) {
      statistics.rows.push_back(totals->row(std::string(name_of_kind(kind))));
    }
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
