// The agreement of a host's ranks, in shared memory, on which ranks continue after a failure. Each
// rank calls. If a rank has seen all live ranks call, or if its time is over, it writes the answer
// for all ranks. If the writer dies, the others detect its death and another rank writes.
//
// There may be several rounds. A rank of an answer may fail to connect to the others, because one
// of them died meanwhile; then it calls again. No rank continues before all live ranks have
// connected, so a rank that calls again finds the others calling as well. There is one exception: a
// stopped rank that reports neither success nor failure for five seconds after the time limit. The
// others stop waiting for it (await_others() in comm/shrink.cc). If it has not connected, it is
// then evicted.
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
  // `world` is the segment; this rank is `rank` of the `ranks` ranks on this host.
  HostAgreement(std::byte* world, int rank, int ranks);

  struct Answer {
    std::vector<int> ranks;  // that continue, in ascending order
    std::uint64_t mark = 0;  // unique to this answer; the same on all of them
  };
  // `is_gone` returns true if a rank is proved dead. Blocks until all other ranks have called or
  // are gone, but at most until the deadline; then continues without the missing ranks. Throws
  // evicted if the others have answered without this rank, or if there is no quorum.
  Answer call(const std::function<bool(int)>& is_gone, const Deadline& deadline, bool quorum);
  // Notes that this rank has connected to the other ranks of the last answer. A rank that could not
  // connect is evicted.
  void go_on() noexcept;
  // Notes that this rank has received an answer for several hosts (net_agreement.h). If a rank dies
  // after that, it may have continued before its death.
  void hear_answer() noexcept { calls_[rank_].store(1, std::memory_order_release); }
  bool has_heard_answer(int rank) const noexcept {
    return calls_[rank].load(std::memory_order_acquire) != 0;
  }
  bool has_anyone_gone_on() const;

  // The progress of a rank that connects to the other ranks of an answer. The answer's mark
  // identifies this meeting. Each rank reports when it begins to connect, and when it has connected
  // to all ranks (done), or has failed and calls again (given_up).
  enum class Meeting : std::uint8_t { under_way, done, given_up };
  void begin_meeting(std::uint64_t mark) noexcept { note_meeting(mark & ~kDone); }
  void end_meeting(std::uint64_t mark) noexcept { note_meeting(mark | kDone); }
  void give_up_meeting() noexcept { note_meeting(0); }
  // Returns the progress of a rank. REQUIRES: the rank has begun to connect.
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
  std::vector<RankStatus> look(const std::function<bool(int)>& is_gone) const;
  bool try_to_answer(std::uint64_t state, const std::vector<RankStatus>& ranks);
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
