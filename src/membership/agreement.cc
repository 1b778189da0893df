#include "membership/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>

#include "base/secret.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr unsigned kLookUs = 200;
constexpr int kGraceMs = 5000;  // for the rank that has begun to write the answer
constexpr std::uint64_t kWhole = 0xffff'ffff;
constexpr std::uint32_t kWentOn = 0xffff'ffff;  // instead of the number of calls

// Returns the state of a round: it names the rank that writes the answer, or says that the answer
// is complete.
std::uint64_t state_of(std::uint32_t round, std::uint64_t writer) {
  return (std::uint64_t{round} << 32) | writer;
}
std::uint32_t round_of(std::uint64_t state) {
  return static_cast<std::uint32_t>(state >> 32);
}
bool is_whole(std::uint64_t state) {
  return (state & kWhole) == kWhole || state == 0;
}
int writer_of(std::uint64_t state) {
  return static_cast<int>(state & kWhole);
}

}  // namespace

HostAgreement::HostAgreement(std::byte* world, int rank, int ranks) : rank_(rank), ranks_(ranks) {
  const WorldLayout layout(ranks);
  record_ = reinterpret_cast<AgreementRecord*>(world + layout.agreement);
  meetings_ = reinterpret_cast<std::atomic<std::uint64_t>*>(world + layout.meetings);
  calls_ = reinterpret_cast<std::atomic<std::uint32_t>*>(world + layout.calls);
  verdicts_ = reinterpret_cast<std::atomic<std::uint8_t>*>(world + layout.verdicts);
}

HostAgreement::Answer HostAgreement::call(const std::function<bool(int)>& is_gone,
                                          const Deadline& deadline, bool quorum) {
  calls_[rank_].store(++round_, std::memory_order_release);
  const Deadline end = deadline.later_by_ms(kGraceMs);
  for (;;) {
    const std::uint64_t state = record_->state.load(std::memory_order_acquire);
    if (round_of(state) > round_ || (round_of(state) == round_ && is_whole(state))) {
      return read();
    }
    if (has_anyone_gone_on()) {
      throw_evicted();
    }
    const bool is_taken = !is_whole(state) && !is_gone(writer_of(state));
    if (is_taken && end.passed()) {
      throw Error(ErrorCode::evicted, "rank " + std::to_string(writer_of(state)) +
                                          " had to decide for this host which ranks continue, but "
                                          "does not answer\nrestart the job");
    }
    if (!is_taken) {
      const bool late = deadline.passed();  // asked once: it may pass during this loop
      const std::vector<RankStatus> ranks = look(is_gone);
      const bool all = std::find(ranks.begin(), ranks.end(), RankStatus::absent) == ranks.end();
      if ((all || late) && !(quorum && !has_quorum(ranks))) {
        if (try_to_answer(state, ranks)) {
          return read();
        }
      } else if (late) {
        throw Error(ErrorCode::evicted, no_quorum(ranks));
      }
    }
    ::usleep(kLookUs);
  }
}

void HostAgreement::go_on() noexcept {
  calls_[rank_].store(kWentOn, std::memory_order_release);
}

bool HostAgreement::has_anyone_gone_on() const {
  return std::any_of(calls_, calls_ + ranks_, [](const std::atomic<std::uint32_t>& calls) {
    return calls.load(std::memory_order_acquire) == kWentOn;
  });
}

std::vector<RankStatus> HostAgreement::look(const std::function<bool(int)>& is_gone) const {
  std::vector<RankStatus> status;
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t calls = calls_[rank].load(std::memory_order_acquire);
    const bool called = calls >= round_ && calls != kWentOn;
    const bool gone = rank != rank_ && is_gone(rank);
    status.push_back(gone ? RankStatus::gone : called ? RankStatus::present : RankStatus::absent);
  }
  return status;
}

// Returns false if another rank was faster.
bool HostAgreement::try_to_answer(std::uint64_t state, const std::vector<RankStatus>& ranks) {
  std::uint64_t mark = 0;
  fill_random(std::as_writable_bytes(std::span(&mark, 1)));
  if (!record_->state.compare_exchange_strong(
          state, state_of(round_, static_cast<std::uint64_t>(rank_)), std::memory_order_acq_rel)) {
    return false;
  }
  std::atomic<std::uint8_t>* const verdict =
      verdicts_ + static_cast<std::size_t>(round_ & 1) * static_cast<std::size_t>(ranks_);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    verdict[rank].store(ranks[rank] == RankStatus::present ? 1 : 0, std::memory_order_relaxed);
  }
  record_->mark[round_ & 1].store(mark, std::memory_order_relaxed);
  record_->state.store(state_of(round_, kWhole), std::memory_order_release);
  return true;
}

HostAgreement::Answer HostAgreement::read() const {
  Answer answer;
  const std::atomic<std::uint8_t>* const verdict =
      verdicts_ + static_cast<std::size_t>(round_ & 1) * static_cast<std::size_t>(ranks_);
  bool mine = false;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (verdict[rank].load(std::memory_order_relaxed) != 0) {
      answer.ranks.push_back(rank);
      mine |= rank == rank_;
    }
  }
  answer.mark = record_->mark[round_ & 1].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  // The round after the next one uses the same memory as this round.
  const std::uint64_t state = record_->state.load(std::memory_order_relaxed);
  if (!mine || round_of(state) > round_ + 1) {
    throw_evicted();
  }
  return answer;
}

}  // namespace unisono::comm
