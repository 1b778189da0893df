// Connecting on rank 0's side: admits the ranks of the job, and keeps strangers from disturbing the
// job.
#pragma once

#include <array>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/absence.h"
#include "bootstrap/meet.h"

namespace unisono::comm {

class Rendezvous {
 public:
  Rendezvous(const JoinRequest& join_request, UniqueFd listener);
  // Blocks until all ranks are in. Errors: those of meet_as_root().
  Meeting collect();

 private:
  struct Pending {  // connected, not yet admitted
    UniqueFd socket;
    pid_t pid = 0;
    Deadline deadline;
    std::chrono::steady_clock::time_point since;
    bool said_hello = false;
    Hello hello{};
    std::array<std::byte, kNonceBytes> nonce{};
  };
  struct Member {
    UniqueFd socket;
    Process process;
  };

  bool is_interrupted();
  void wait();
  void accept_pending();
  bool make_room();
  // Notes that accept() found nobody, or failed for lack of a descriptor. Throws if the lack lasts.
  void note_starvation(int error);
  // Returns false if the connection is finished (admitted or refused).
  bool attend(Pending& pending);
  bool hear_hello(Pending& pending);
  bool hear_proof(Pending& pending);
  bool let_in(Pending& pending);
  void turn_away(Pending& pending, const std::string& why);
  void check_members();
  void check_absent();
  Meeting welcome();
  // `at_fault` is a rank of this meeting, or -1 if no single rank is at fault.
  [[noreturn]] void fail(ErrorCode code, const std::string& message, int at_fault = -1);
  void tell(std::span<const std::byte> reason);
  std::vector<int> missing() const;
  std::string missing_ranks() const;
  [[noreturn]] void fail_missing();
  void tell_late_comers(std::span<const std::byte> reason);

  const JoinRequest& join_request_;
  const RankNames& names_ = join_request_.names;
  UniqueFd listener_;
  Deadline deadline_;  // the earliest deadline of all admitted ranks
  Deadline silent_ = Deadline::after_ms(kSilentMs);
  bool said_waiting_ = false;
  std::optional<Deadline> starved_;  // when a lack of descriptors becomes an error; empty: none
  std::list<Pending> pending_;
  std::vector<Member> members_;  // by rank
  int joined_ = 1;
  AbsenceCheck absence_check_{join_request_.job, join_request_.size};
  std::vector<int> absent_;  // ranks that will not come
  std::string refusal_;      // the last refusal, for the report
};

}  // namespace unisono::comm
