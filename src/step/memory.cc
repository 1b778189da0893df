#include "step/memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "step/extent.h"
#include "step/walk.h"

namespace unisono::step {
namespace {

using Place = std::pair<int, std::string>;  // a stage and a tensor

// For how long the activations of a stage are there.
class Lives {
 public:
  void note(const Visit& visit, std::size_t at) {
    const bool is_pass = visit.section.pass != StagePass::none;
    for (const auto* names : {&visit.node.reads, &visit.node.writes}) {
      for (const std::string& name : *names) {
        const Place place(visit.stage, name);
        const auto [last, is_new] = last_.insert({place, at});
        if (!is_new && names == &visit.node.writes && last->second != at) {
          ends_.insert({place, last->second});  // it is made anew
        }
        last->second = at;
        if (!is_pass) {
          outside_.insert(place);
        }
      }
    }
  }
  // Every microbatch has its own.
  bool is_of_pass(const Place& place) const { return !outside_.contains(place); }
  bool ends(const Place& place, std::size_t at, bool is_in_pass) const {
    const auto last = last_.find(place);
    if (last == last_.end()) {
      return true;
    }
    // What is not a microbatch's own stays until all of them have passed.
    const bool stays = is_in_pass && !is_of_pass(place);
    return !stays && (last->second <= at || ends_.contains({place, at}));
  }

 private:
  std::map<Place, std::size_t> last_;
  std::set<std::pair<Place, std::size_t>> ends_;  // of what is made again later
  std::set<Place> outside_;
};

class Measure {
 public:
  Measure(const Step& step, const StepRanks& ranks)
      : step_(step),
        ranks_(ranks),
        memory_(static_cast<std::size_t>(ranks.count())),
        held_(memory_.size()),
        beside_passes_(memory_.size()),
        passing_(memory_.size()) {
    for (int stage = 0; stage < ranks.stages(); ++stage) {
      ranks_of_.emplace_back();
      for (int rank = 0; rank < ranks.count(); ++rank) {
        if (ranks.has_stage(rank, stage)) {
          ranks_of_.back().push_back(rank);
        }
      }
    }
  }

  std::vector<Memory> run() {
    std::vector<Finding> none;
    std::size_t at = 0;
    walk(step_, ranks_, 2, none, [&](const Visit& visit) {
      note(visit);
      lives_.note(visit, at++);
    });
    at = 0;
    walk(step_, ranks_, 2, none, [&](const Visit& visit) { hold(visit, at++); });
    for (std::size_t rank = 0; step_.pipeline && rank < memory_.size(); ++rank) {
      double& most = memory_[rank].activations;
      most = std::max(most, beside_passes_[rank] + under_way(static_cast<int>(rank)));
    }
    return std::move(memory_);
  }

 private:
  // What one microbatch holds of a stage, by pass: at most, and behind it.
  struct Passing {
    std::map<std::string, double> held = {};
    std::array<double, 4> most = {};
    std::array<double, 4> left = {};
  };

  const std::vector<int>& ranks_of(int stage) const {
    return ranks_of_[static_cast<std::size_t>(stage)];
  }
  double bytes_of(const std::string& name, const State& state, int rank) const {
    return local_bytes(step_, ranks_, *step_.find_tensor(name), state.at(name), rank);
  }

  // Weights and caches are held once for each layer of a section that uses them.
  void note(const Visit& visit) {
    for (const auto* names : {&visit.node.reads, &visit.node.writes}) {
      for (const std::string& name : *names) {
        const Tensor& tensor = *step_.find_tensor(name);
        const bool is_kept =
            tensor.kind == Tensor::Kind::weight || tensor.kind == Tensor::Kind::cache;
        const int layer = tensor.is_layered ? visit.section.first_layer : -1;
        if (is_kept && counted_.insert({visit.stage, name, layer}).second) {
          const int copies = tensor.is_layered ? visit.section.repeat : 1;
          for (const int rank : ranks_of(visit.stage)) {
            Memory& memory = memory_[static_cast<std::size_t>(rank)];
            double& sum = tensor.kind == Tensor::Kind::weight ? memory.weights : memory.cache;
            sum += copies * local_bytes(step_, ranks_, tensor, tensor.placement, rank);
          }
        }
      }
    }
  }

  // What a stage is sent is there when it is sent.
  void hold(const Visit& visit, std::size_t at) {
    const bool is_sent = visit.node.kind == Node::Kind::send;
    const int stage = is_sent ? ranks_.sends_to(visit.section) : visit.stage;
    const State& state = is_sent ? visit.before : visit.after;
    for (std::size_t i = 0; stage >= 0 && i < visit.node.writes.size(); ++i) {
      const std::string& name = visit.node.writes[i];
      const std::string& from = is_sent ? visit.node.reads[i] : name;
      if (step_.find_tensor(name)->kind == Tensor::Kind::activation && state.contains(from)) {
        for (const int rank : ranks_of(stage)) {
          const int sender = is_sent ? ranks_.rank_at(rank, visit.stage) : rank;
          place_of(rank, stage, name, visit.section.pass) = bytes_of(from, state, sender);
        }
      }
    }
    count(visit, at);
  }

  double& place_of(int rank, int stage, const std::string& name, StagePass pass) {
    const auto at = static_cast<std::size_t>(rank);
    return pass != StagePass::none && lives_.is_of_pass({stage, name})
               ? passing_[at][stage].held[name]
               : held_[at][{stage, name}];
  }

  void count(const Visit& visit, std::size_t at) {
    const bool is_pass = visit.section.pass != StagePass::none;
    for (const int rank : ranks_of(visit.stage)) {
      auto& held = held_[static_cast<std::size_t>(rank)];
      double sum = 0;
      for (const auto& [place, bytes] : held) {
        sum += bytes;
      }
      if (is_pass) {
        pass(passing_[static_cast<std::size_t>(rank)][visit.stage], visit, at);
      }
      double& most = is_pass ? beside_passes_[static_cast<std::size_t>(rank)]
                             : memory_[static_cast<std::size_t>(rank)].activations;
      most = std::max(most, sum);
      std::erase_if(held, [&](const auto& one) { return lives_.ends(one.first, at, is_pass); });
    }
  }

  void pass(Passing& passing, const Visit& visit, std::size_t at) const {
    const auto number = static_cast<std::size_t>(visit.section.pass);
    const auto sum_of = [&] {
      double sum = 0;
      for (const auto& [name, bytes] : passing.held) {
        sum += bytes;
      }
      return sum;
    };
    passing.most[number] = std::max(passing.most[number], sum_of());
    std::erase_if(passing.held,
                  [&](const auto& one) { return lives_.ends({visit.stage, one.first}, at, true); });
    passing.left[number] = sum_of();
  }

  // The most that all microbatches hold at once on a rank, in the order of its passes.
  double under_way(int rank) const {
    const auto& own = passing_[static_cast<std::size_t>(rank)];
    double now = 0;
    double most = 0;
    for (const pipeline::Action& action : ranks_.actions_of(rank)) {
      const auto found = own.find(action.stage);
      for (const StagePass one : passes_of(action.kind)) {
        if (found != own.end()) {
          const auto number = static_cast<std::size_t>(one);
          const double before = found->second.left[number - 1];
          most = std::max(most, now - before + found->second.most[number]);
          now += found->second.left[number] - before;
        }
      }
    }
    return most;
  }

  const Step& step_;
  const StepRanks& ranks_;
  std::vector<Memory> memory_;
  std::vector<std::vector<int>> ranks_of_;       // by stage
  std::vector<std::map<Place, double>> held_;    // of each rank, as the next two
  std::vector<double> beside_passes_;            // the most of what is no microbatch's own
  std::vector<std::map<int, Passing>> passing_;  // by stage
  std::set<std::tuple<int, std::string, int>> counted_;
  Lives lives_;
};

}  // namespace

std::vector<Memory> memory_of(const Step& step) {
  return Measure(step, StepRanks(step)).run();
}

}  // namespace unisono::step
