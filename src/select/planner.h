// From a call to a bound program: checks the arguments, chooses the algorithm, builds, lowers and
// binds; keeps what it made.
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
#include "engine/execution.h"
#include "select/across_hosts.h"
#include "select/encoded.h"
#include "select/recent_plans.h"
#include "unisono/call.hpp"
#include "unisono/explain.hpp"

namespace unisono::comm {

class Profile;
class Programs;
struct UserSchedule;

// All that does not change between two calls with the same arguments on other buffers.
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
  // The input is first copied: in place, by an algorithm that cannot, or where something is done
  // with it before.
  bool stage_input = false;
  bool runs_in_place = false;  // the program reads its input where it writes its output
  double factor = 1.0;
  bool encoded = false;       // some moves between hosts carry codes
  engine::Extent moved = {};  // of the buffers of the program
  // Scratch of the program, then the staged input, then the output if it is narrowed after.
  std::size_t workspace_bytes = 0;
  std::size_t staged_input = 0;  // where it begins
  std::size_t staged_output = 0;
  PackedRecord record = {};
  // Whether the output is narrower than what the program makes.
  bool narrows() const noexcept { return around.moved != dtype; }
  mutable int recorded = -1;  // its name in a recording, once it has one (Recorder::name())
};

class Planner {
 public:
  // `forced` as in ConnectOptions::algorithm. Throws config if it is malformed.
  // `programs` and `profile` outlive the planner. `multicast`: what the lanes can. `hosts`: of the
  // group's ranks. `accuracy`: of calls that say none.
  Planner(Programs& programs, const Profile& profile, int rank, int ranks, std::uint64_t group_id,
          std::string_view forced, double accuracy, bool multicast, AcrossHosts hosts);

  // The plan of a call whose buffers are checked too. Throws usage. The reference is good until the
  // next find(); an operation that lives longer copies the pointer.
  const std::shared_ptr<const Prepared>& find(const Call& call) {
    const std::shared_ptr<const Prepared>* const latest = recent_.latest(call);
    return latest != nullptr ? *latest : look_up(call);
  }
  // Buffers are not looked at. Throws usage.
  Explanation explain(const Call& call);
  // `threads`, or fewer where the profile knows, for one host, that fewer are quicker.
  int most_threads(const Call& call, int threads) const;
  // The user names one algorithm for the call, here or in the options.
  bool is_named(const Call& call) const { return !named(call).empty() && !is_reproducible(call); }

 private:
  const std::shared_ptr<const Prepared>& look_up(const Call& call);
  // What serves a call.
  struct Choice {
    const Algorithm* algorithm = nullptr;
    Shape shape = {};
    std::string name = {};                          // with its parameters
    std::shared_ptr<const UserSchedule> user = {};  // in the place of an algorithm
    // Made of it, or of none; lives as long as the planner.
    const cost::EncodedAlgorithm* encoded = nullptr;
    Explanation::Why why = Explanation::Why::built_in;
  };
  // What the user says; empty: nothing.
  std::string_view named(const Call& call) const;
  bool is_reproducible(const Call& call) const;
  Choice choose(const Call& call);
  Choice choose_named(const Call& call, std::string_view name);
  Choice choose_user(const Call& call, const std::string& path);
  std::optional<Choice> choose_encoded(const Call& call);
  // Nothing, and why in `refused`: it would round twice, or leave the ranks with other bits.
  std::optional<Choice> try_encoded(const Call& call, double accuracy, Refused& refused);
  const cost::EncodedAlgorithm& encode(const Choice& choice, MoveCode code);
  void check_accuracy(const Call& call) const;
  // Why the algorithm cannot serve the call; "": it can.
  std::string inability(const Call& call, const Algorithm& algorithm, const Shape& shape) const;
  // What others than the user say where that can serve the call; "": nothing. The profile was
  // measured on one host.
  std::string_view profiled(const Call& call, bool reproducible) const;
  std::string_view modelled(const Call& call, bool reproducible);
  std::string_view if_it_serves(const Call& call, const std::string& name) const;
  Prepared prepare(const Call& call, bool in_place);
  void check_shape(const Call& call) const;
  [[noreturn]] void refuse(const Call& call, const std::string& what,
                           const std::string& hint) const;

  Programs& programs_;
  const Profile& profile_;
  int rank_;
  int ranks_;
  std::uint64_t group_id_;
  bool multicast_;
  double accuracy_;
  AcrossHosts hosts_;
  std::map<std::string, cost::EncodedAlgorithm> encoded_;  // of those that were named
  std::map<Collective, std::string> forced_;
  std::map<std::string, std::shared_ptr<const UserSchedule>> user_schedules_;  // by path
  RecentPlans recent_;
  std::shared_ptr<const Prepared> latest_v_;
};

}  // namespace unisono::comm
