// Which ranks of one host go on after a failure, agreed in the memory that they share: each calls,
// and one that has seen all that live call, or whose time is over, writes the answer for all. A
// writer that dies is found dead, and another writes.
//
// Rounds: a rank that was in an answer and could not meet the others (one died meanwhile) calls
// again. Nobody goes on before all that live have met, so that one that calls again finds the
// others there: but one that says neither for five seconds after the time to meet, as it is
// stopped, is waited for no longer (await_others() in comm/shrink.cc). If it could not meet them,
// it is evicted then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/host_memory.h"
#include "membership/quorum.h"

namespace unisono::comm {

class HostAgreement {
 public:
  // `world`: the segment; `rank` of `ranks` on this host.
  HostAgreement(std::byte* world, int rank, int ranks);

  struct Answer {
    std::vector<int> ranks;  // that go on, in ascending order
    std::uint64_t mark = 0;  // the same for all of them, and of this answer alone
  };
  // `is_gone`: whether a rank is proved to be no more. Blocks until all others have called or are
  // gone, at most until the deadline; then without them. Throws evicted: the others have answered
  // without this rank, or there is no quorum.
  Answer call(const std::function<bool(int)>& is_gone, const Deadline& deadline, bool quorum);
  // This rank has met the others of the last answer. A rank that could not is evicted.
  void go_on() noexcept;
  // This rank has heard an answer that several hosts have got (net_agreement.h). A rank that dies
  // after that may have gone on before.
  void hear_answer() noexcept { calls_[rank_].store(1, std::memory_order_release); }
  bool has_heard_answer(int rank) const noexcept {
    return calls_[rank].load(std::memory_order_acquire) != 0;
  }
  bool has_anyone_gone_on() const;

  // The meeting of those that an answer names, by its mark. Each says when it begins to meet the
  // others, and when it has met all of them; or that it has not, and calls again.
  enum class Meeting : std::uint8_t { under_way, done, given_up };
  void begin_meeting(std::uint64_t mark) noexcept { note_meeting(mark & ~kDone); }
  void end_meeting(std::uint64_t mark) noexcept { note_meeting(mark | kDone); }
  void give_up_meeting() noexcept { note_meeting(0); }
  // How far a rank is that has begun it.
  Meeting meeting_of(int rank, std::uint64_t mark) const noexcept {
    const std::uint64_t noted = meetings_[rank].load(std::memory_order_acquire);
    return noted == (mark | kDone)    ? Meeting::done
           : noted == (mark & ~kDone) ? Meeting::under_way
                                      : Meeting::given_up;
  }

 private:
  static constexpr std::uint64_t kDone = 1;
  void note_meeting(std::uint64_t what) noexcept {
    meetings_[rank_].store(what, std::memory_order_release);
  }
  std::vector<Standing> look(const std::function<bool(int)>& is_gone) const;
  bool try_to_answer(std::uint64_t state, const std::vector<Standing>& ranks);
  Answer read() const;

  AgreementRecord* record_;
  std::atomic<std::uint64_t>* meetings_;
  std::atomic<std::uint32_t>* calls_;
  std::atomic<std::uint8_t>* verdicts_;
  int rank_;
  int ranks_;
  std::uint32_t round_ = 0;
};

}  // namespace unisono::comm
