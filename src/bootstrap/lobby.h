// Where rank 0 receives: it lets in the ranks that belong to the job, and keeps the rest from
// disturbing.
#pragma once

#include <array>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/absence.h"
#include "bootstrap/meet.h"

namespace unisono::comm {

class Lobby {
 public:
  Lobby(const Invitation& invitation, UniqueFd listener);
  // Until all are in. Errors as of meet_as_root().
  Meeting collect();

 private:
  struct Pending {  // connected, not yet let in
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
  // Nobody was there to be accepted, or for want of a descriptor. Throws after some time of that.
  void note_starvation(int error);
  // False: nothing more is to be heard from it (let in, or turned away).
  bool attend(Pending& pending);
  bool hear_hello(Pending& pending);
  bool hear_proof(Pending& pending);
  bool let_in(Pending& pending);
  void turn_away(Pending& pending, const std::string& why);
  void check_members();
  void check_absent();
  Meeting welcome();
  // `at_fault`: a rank as they meet; -1: none alone.
  [[noreturn]] void fail(ErrorCode code, const std::string& message, int at_fault = -1);
  void tell(std::span<const std::byte> reason);
  std::vector<int> missing() const;
  std::string missing_ranks() const;
  [[noreturn]] void fail_missing();
  void tell_late_comers(std::span<const std::byte> reason);

  const Invitation& invitation_;
  const RankNames& names_ = invitation_.names;
  UniqueFd listener_;
  Deadline deadline_;  // the earliest of all who are in
  Deadline silent_ = Deadline::after_ms(kSilentMs);
  bool said_waiting_ = false;
  std::optional<Deadline> starved_;  // when that becomes an error; empty: it is not
  std::list<Pending> pending_;
  std::vector<Member> members_;  // by rank
  int joined_ = 1;
  AbsenceCheck absence_check_{invitation_.job, invitation_.size};
  std::vector<int> absent_;  // ranks that will not come
  std::string refusal_;      // the last one that was turned away, for the report
};

}  // namespace unisono::comm
