#include "step/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/json_text.h"
#include "network_model/simulator/workload.h"
#include "step/calls.h"

namespace unisono::step {
namespace {

struct Algorithm {
  const char* collective;
  const char* name;
};

Algorithm algorithm_of(const std::string& what) {
  static const std::map<std::string, Algorithm> kAlgorithms = {
      {"all_reduce", {"all_reduce", "ring"}},         {"all_gather", {"all_gather", "ring"}},
      {"reduce_scatter", {"reduce_scatter", "ring"}}, {"all_to_all", {"all_to_all", "pairwise"}},
      {"dispatch", {"all_to_all", "pairwise"}},       {"combine", {"all_to_all", "pairwise"}},
      {"broadcast", {"broadcast", "binomial"}}};
  return kAlgorithms.at(what);
}

class Writer {
 public:
  Writer(const Step& step, const planner::DeviceModel& device, planner::Precision precision)
      : calls_(calls_of(step)),
        around_(step.pipeline ? neighbours(*step.pipeline) : pipeline::Neighbours{}),
        ranks_(static_cast<int>(calls_.size())),
        rates_(planner::rates_of(device, precision)) {}

  // Writes a shared call when the first of its ranks reaches it. The items of each rank keep their
  // order, so that rank waits until the others have written their earlier items.
  std::string write() {
    out_ = "{\"format\": " + json_string(network_model::kWorkloadFormat) +
           ", \"ranks\": " + std::to_string(ranks_) + ",\n \"items\": [";
    next_.assign(calls_.size(), 0);
    awaited_.resize(calls_.size());
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (int rank = 0; rank < ranks_; ++rank) {
        has_moved = advance(rank) || has_moved;
      }
    }
    return out_ + "\n]}\n";
  }

 private:
  using Taken = std::tuple<int, int, bool>;  // stage, microbatch, and whether it is forward
  using Awaited = std::map<Taken, std::string>;

  const Call* head(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return next_[at] < calls_[at].size() ? &calls_[at][next_[at]] : nullptr;
  }
  void pass(int rank) { ++next_[static_cast<std::size_t>(rank)]; }

  bool advance(int rank) {
    bool has_moved = false;
    for (const Call* call = head(rank); call != nullptr; call = head(rank)) {
      if (!begins(rank)) {
        return has_moved;
      }
      if (is_message(*call)) {
        message(rank, *call);
      } else if (call->what == "computing") {
        compute(rank);
      } else if (call->peer >= 0 ? !transfer(rank, *call) : !collective(*call)) {
        return has_moved;
      }
      has_moved = true;
    }
    return has_moved;
  }

  // Writes one item for the computation between two calls. Ranks that compute equally long, and
  // have reached this point, share the item.
  void compute(int rank) {
    const Computing mine = computing(rank);
    std::vector<int> group;
    for (int other = 0; other < ranks_; ++other) {
      if (other == rank || (computing(other) == mine && !is_waiting(other))) {
        group.push_back(other);
        next_[static_cast<std::size_t>(other)] += mine.calls;
      }
    }
    begin(mine.name, group);
    out_ += ", \"compute_us\": " + json_number(std::round(mine.us * 1000) / 1000) + "}";
  }

  struct Computing {
    double us = 0;
    std::size_t calls = 0;
    std::string name = {};
    bool operator==(const Computing&) const = default;
  };
  // Returns the computation from the rank's current position to its next call.
  Computing computing(int rank) const {
    const std::vector<Call>& calls = calls_[static_cast<std::size_t>(rank)];
    Computing all;
    const std::size_t first = next_[static_cast<std::size_t>(rank)];
    for (std::size_t i = first;
         i < calls.size() && calls[i].what == "computing" && calls[i].action == calls[first].action;
         ++i) {
      all.us += 1e6 * std::max(calls[i].flops / rates_.flops_per_s,
                               calls[i].memory_bytes / rates_.memory_bytes_per_s);
      all.name = name_of(calls[i]);
      ++all.calls;
    }
    return all;
  }

  bool collective(const Call& call) {
    double bytes = 0;
    for (const int member : call.group) {
      const Call* const other = head(member);
      if (other == nullptr || other->what != call.what || other->group != call.group ||
          other->node != call.node || other->layer != call.layer || other->action != call.action ||
          is_waiting(member)) {
        return false;
      }
      bytes = std::max(bytes, other->bytes);
    }
    const Algorithm algorithm = algorithm_of(call.what);
    operation(call, call.group, algorithm.collective, algorithm.name, bytes);
    const std::vector<int> group = call.group;
    for (const int member : group) {
      pass(member);
    }
    return true;
  }

  // A receiver in a ring has already posted its receive, so its next send may be written first.
  bool transfer(int rank, const Call& call) {
    if (call.what == "send") {
      operation(call, {rank, call.peer}, "broadcast", "binomial", call.bytes);
      ++under_way_[{rank, call.peer}];
      pass(rank);
      return true;
    }
    const auto at = static_cast<std::size_t>(rank);
    if (under_way_[{call.peer, rank}] > 0) {
      --under_way_[{call.peer, rank}];
      pass(rank);
      return true;
    }
    if (next_[at] + 1 < calls_[at].size() && calls_[at][next_[at] + 1].node == call.node &&
        calls_[at][next_[at] + 1].what == "send") {
      std::swap(calls_[at][next_[at]], calls_[at][next_[at] + 1]);
      return true;
    }
    return false;
  }

  // Returns true for a message of a pipeline. It is written into a stream per stage and direction,
  // so that it delays nothing else: it leaves after its pass, and the pass that uses it begins
  // after it arrives.
  static bool is_message(const Call& call) {
    return call.action && (is_send(call.action->kind) || is_receive(call.action->kind));
  }
  static std::string text_of(pipeline::ActionKind kind, int stage, int microbatch) {
    return to_string(pipeline::Action{.kind = kind, .stage = stage, .microbatch = microbatch});
  }

  void message(int rank, const Call& call) {
    using pipeline::ActionKind;
    const pipeline::Action& action = *call.action;
    const bool is_forward = is_forward_lane(action.kind);
    const ActionKind send = is_forward ? ActionKind::send_forward : ActionKind::send_backward;
    pass(rank);
    if (is_receive(action.kind)) {
      const int from =
          (is_forward ? around_.before : around_.next)[static_cast<std::size_t>(action.stage)];
      awaited_[static_cast<std::size_t>(rank)][{action.stage, action.microbatch, is_forward}] =
          text_of(send, from, action.microbatch);
      return;
    }
    const std::string name = to_string(action);
    begin("before " + name, {rank});
    out_ += ", \"compute_us\": 0}";
    out_ += ",\n  {\"name\": " + json_string(name) + ", \"from\": " + std::to_string(rank) +
            ", \"to\": " + std::to_string(call.peer) +
            ", \"bytes\": " + json_number(std::round(call.bytes)) +
            ", \"stream\": " + std::to_string(2 * action.stage + (is_forward ? 1 : 2)) +
            ", \"after_own\": " + json_string("before " + name) + "}";
    sent_.insert({call.peer, name});
  }

  // Returns the message for which the rank's current call waits: the input of its pass. If a stage
  // computes nothing, this is the message that it forwards.
  std::map<Taken, std::string>::const_iterator awaited(int rank) const {
    const Awaited& all = awaited_[static_cast<std::size_t>(rank)];
    const Call* const call = head(rank);
    if (call == nullptr || !call->action || is_receive(call->action->kind)) {
      return all.end();
    }
    const pipeline::Action& action = *call->action;
    const bool is_forward =
        action.kind == pipeline::ActionKind::forward || is_forward_lane(action.kind);
    return all.find({action.stage, action.microbatch, is_forward});
  }
  bool is_waiting(int rank) const {
    return awaited(rank) != awaited_[static_cast<std::size_t>(rank)].end();
  }

  // Returns true if the input of the pass has been sent.
  bool begins(int rank) {
    if (!is_waiting(rank)) {
      return true;
    }
    const auto message = awaited(rank);
    if (!sent_.contains({rank, message->second})) {
      return false;
    }
    begin("behind " + message->second, {rank});
    out_ += ", \"compute_us\": 0, \"after_own\": " + json_string(message->second) + "}";
    awaited_[static_cast<std::size_t>(rank)].erase(message);
    return true;
  }

  static std::string name_of(const Call& call) {
    return (call.action ? to_string(*call.action) + ", " : std::string()) +
           (call.layer >= 0 ? "layer " + std::to_string(call.layer) + ", " : "") + call.node;
  }

  void begin(const std::string& name, const std::vector<int>& group) {
    out_ += is_first_ ? "\n  {" : ",\n  {";
    is_first_ = false;
    out_ += "\"name\": " + json_string(name) + ", \"group\": [";
    for (std::size_t i = 0; i < group.size(); ++i) {
      out_ += (i == 0 ? "" : ", ") + std::to_string(group[i]);
    }
    out_ += "]";
  }

  void operation(const Call& call, const std::vector<int>& group, const char* collective,
                 const char* algorithm, double bytes) {
    begin(name_of(call), group);
    out_ += ", \"collective\": " + json_string(collective) +
            ", \"algorithm\": " + json_string(algorithm) +
            ", \"bytes\": " + json_number(std::round(bytes)) + "}";
  }

  std::vector<std::vector<Call>> calls_;
  pipeline::Neighbours around_;
  int ranks_;
  network_model::DeviceRates rates_;
  std::vector<std::size_t> next_;
  std::map<std::pair<int, int>, int> under_way_;
  std::vector<Awaited> awaited_;                // by rank
  std::set<std::pair<int, std::string>> sent_;  // receiving rank and name
  std::string out_;
  bool is_first_ = true;
};

}  // namespace

std::string to_workload_json(const Step& step, const planner::DeviceModel& device,
                             planner::Precision precision) {
  return Writer(step, device, precision).write();
}

}  // namespace unisono::step
