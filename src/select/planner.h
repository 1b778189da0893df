// Turns a call into a bound program: checks the arguments, chooses the algorithm, then builds,
// lowers and binds its schedule. Caches the results.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "diagnose/flight_recorder.h"
#include "engine/around.h"
#include "engine/bound_program.h"
#include "engine/call_checks.h"
#include "engine/execution.h"
#include "select/across_hosts.h"
#include "select/encoded.h"
#include "select/recent_plans.h"
#include "unisono/explain.hpp"

namespace unisono::comm {

class Profile;
class Programs;
struct UserSchedule;

// The part of a plan that stays the same for calls with equal arguments and other buffers.
struct Prepared {
  engine::BoundProgram program = {};
  engine::Extent extent = {};
  engine::Reducer reducer = {};
  std::uint64_t signature = 0;  // without the operation's number
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  std::size_t count = 0;
  std::string algorithm = {};
  engine::Around around = {};
  // Copy the input first: for an in-place call whose algorithm cannot run in place, or if the input
  // is converted first.
  bool stage_input = false;
  bool runs_in_place = false;  // the program reads its input from its output buffer
  double factor = 1.0;
  bool encoded = false;       // some moves between hosts are encoded
  engine::Extent moved = {};  // sizes of the program's buffers
  // The program's scratch, then the staged input, then the output if it is narrowed afterwards.
  std::size_t workspace_bytes = 0;
  std::size_t staged_input = 0;  // offset in the workspace
  std::size_t staged_output = 0;
  PackedRecord record = {};
  // Returns true if the output is narrower than the program's result.
  bool narrows() const noexcept { return around.moved != dtype; }
  mutable int recorded = -1;  // index of its name in the recording, once set (Recorder::name())
};

class Planner {
 public:
  // `forced` as in ConnectOptions::algorithm; throws config if it is malformed. `programs` and
  // `profile` must outlive the planner. `multicast`: whether the lanes support it. `hosts`: the
  // hosts of the group's ranks. `max_error`: for calls without their own.
  Planner(Programs& programs, const Profile& profile, engine::Caller caller, std::uint64_t group_id,
          std::string_view forced, double max_error, bool multicast, AcrossHosts hosts);

  // Returns the plan of a call, and checks the call's buffers too. Throws usage. The reference is
  // valid until the next find(); an operation that lives longer copies the pointer.
  const std::shared_ptr<const Prepared>& find(const Call& call) {
    const std::shared_ptr<const Prepared>* const latest = recent_.latest(call);
    return latest != nullptr ? *latest : look_up(call);
  }
  // Ignores the call's buffers. Throws usage.
  Explanation explain(const Call& call);
  // Returns `threads`, or fewer if the profile, on one host, says that fewer are faster.
  int most_threads(const Call& call, int threads) const;
  // Returns true if the user named one algorithm for the call, in the call or in the options.
  bool is_named(const Call& call) const { return !named(call).empty() && !is_reproducible(call); }

 private:
  const std::shared_ptr<const Prepared>& look_up(const Call& call);
  // The algorithm chosen for a call.
  struct Choice {
    const Algorithm* algorithm = nullptr;
    Shape shape = {};
    std::string name = {};                          // with its parameters
    std::shared_ptr<const UserSchedule> user = {};  // used instead of an algorithm
    // The encoded form of the algorithm, or nullptr; lives as long as the planner.
    const cost::EncodedAlgorithm* encoded = nullptr;
    Explanation::Why why = Explanation::Why::built_in;
  };
  // Returns the user's choice; empty if there is none.
  std::string_view named(const Call& call) const;
  bool is_reproducible(const Call& call) const;
  Choice choose(const Call& call);
  Choice choose_named(const Call& call, std::string_view name);
  Choice choose_user(const Call& call, const std::string& path);
  std::optional<Choice> choose_encoded(const Call& call);
  // Returns nothing, with the reason in `refused`, if encoding would round twice, or leave the
  // ranks with different bits.
  std::optional<Choice> try_encoded(const Call& call, double max_error, Refused& refused);
  const cost::EncodedAlgorithm& encode(const Choice& choice, MoveCode code);
  void check_max_error(const Call& call) const;
  // Returns why the algorithm cannot serve the call; "" if it can.
  std::string inability(const Call& call, const Algorithm& algorithm, const Shape& shape) const;
  // Returns the choice of the profile or the model if it can serve the call; "" if there is none.
  // The profile was measured on one host.
  std::string_view profiled(const Call& call, bool reproducible) const;
  std::string_view modelled(const Call& call, bool reproducible);
  std::string_view if_it_serves(const Call& call, const std::string& name) const;
  Prepared prepare(const Call& call, bool in_place);
  void check_shape(const Call& call) const;
  [[noreturn]] void refuse(const Call& call, const std::string& what,
                           const std::string& hint) const;

  Programs& programs_;
  const Profile& profile_;
  engine::Caller caller_;
  std::uint64_t group_id_;
  bool multicast_;
  double max_error_;
  AcrossHosts hosts_;
  std::map<std::string, cost::EncodedAlgorithm> encoded_;  // by name, for the named ones
  std::map<Collective, std::string> forced_;
  std::map<std::string, std::shared_ptr<const UserSchedule>> user_schedules_;  // by path
  RecentPlans recent_;
  std::shared_ptr<const Prepared> latest_v_;
};

}  // namespace unisono::comm
