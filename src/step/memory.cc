#include "step/memory.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "step/extent.h"
#include "step/walk.h"

namespace unisono::step {
namespace {

using StageTensor = std::pair<int, std::string>;  // stage and tensor

// Tracks the lifetimes of a stage's activations.
class Lives {
 public:
  void note(const Visit& visit, std::size_t at) {
    const bool is_pass = visit.section.pass != StagePass::none;
    for (const auto* names : {&visit.node.reads, &visit.node.writes}) {
      for (const std::string& name : *names) {
        const StageTensor place(visit.stage, name);
        const auto [last, is_new] = last_.insert({place, at});
        if (!is_new && names == &visit.node.writes && last->second != at) {
          ends_[last->second].push_back(place);  // written again
        }
        last->second = at;
        if (!is_pass) {
          outside_.insert(place);
        }
      }
    }
  }
  void finish() {
    for (const auto& [place, at] : last_) {
      ends_[at].push_back(place);
    }
  }
  bool is_known(const StageTensor& place) const { return last_.contains(place); }
  // Returns true if every microbatch has its own copy.
  bool is_of_pass(const StageTensor& place) const { return !outside_.contains(place); }
  // Returns the activations that end after a visit. Those shared by all microbatches stay until all
  // microbatches have passed.
  std::vector<StageTensor> ending(std::size_t at, bool is_in_pass) {
    std::vector<StageTensor> ended = std::move(ends_[at]);
    if (is_in_pass) {
      const auto later = std::stable_partition(
          ended.begin(), ended.end(), [&](const StageTensor& place) { return is_of_pass(place); });
      std::move(later, ended.end(), std::back_inserter(later_));
      ended.erase(later, ended.end());
    } else {
      std::move(later_.begin(), later_.end(), std::back_inserter(ended));
      later_.clear();
    }
    return ended;
  }

 private:
  std::map<StageTensor, std::size_t> last_;
  std::map<std::size_t, std::vector<StageTensor>> ends_;
  std::vector<StageTensor> later_;
  std::set<StageTensor> outside_;
};

// The bytes held by name, and their sum.
template <typename Name>
class Held {
 public:
  void set(const Name& name, double bytes) {
    double& mine = all_[name];
    sum_ += bytes - mine;
    mine = bytes;
  }
  void erase(const Name& name) {
    if (const auto found = all_.find(name); found != all_.end()) {
      sum_ -= found->second;
      all_.erase(found);
    }
  }
  double sum() const { return sum_; }

 private:
  std::map<Name, double> all_;
  double sum_ = 0;
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
    lives_.finish();
    at = 0;
    walk(step_, ranks_, 2, none, [&](const Visit& visit) { hold(visit, at++); });
    for (std::size_t rank = 0; step_.pipeline && rank < memory_.size(); ++rank) {
      double& most = memory_[rank].activations;
      most = std::max(most, beside_passes_[rank] + under_way(static_cast<int>(rank)));
    }
    return std::move(memory_);
  }

 private:
  // The memory of one microbatch on a stage, by pass: its peak, and the rest that stays after the
  // pass.
  struct Passing {
    Held<std::string> held = {};
    std::array<double, 4> most = {};
    std::array<double, 4> left = {};
  };

  const std::vector<int>& ranks_of(int stage) const {
    return ranks_of_[static_cast<std::size_t>(stage)];
  }
  double bytes_of(const std::string& name, const State& state, int rank) const {
    return local_bytes(step_, ranks_, ranks_.tensor(name), state.at(name), rank);
  }

  // Counts weights and caches once for each layer of a section that uses them.
  void note(const Visit& visit) {
    for (const auto* names : {&visit.node.reads, &visit.node.writes}) {
      for (const std::string& name : *names) {
        const Tensor& tensor = ranks_.tensor(name);
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

  // A tensor occupies memory on the receiving stage from the moment it is sent.
  void hold(const Visit& visit, std::size_t at) {
    const bool is_sent = visit.node.kind == Node::Kind::send;
    const int stage = is_sent ? ranks_.sends_to(visit.section) : visit.stage;
    const State& state = is_sent ? visit.before : visit.after;
    for (std::size_t i = 0; stage >= 0 && i < visit.node.writes.size(); ++i) {
      const std::string& name = visit.node.writes[i];
      const std::string& from = is_sent ? visit.node.reads[i] : name;
      if (ranks_.tensor(name).kind == Tensor::Kind::activation && state.contains(from)) {
        for (const int rank : ranks_of(stage)) {
          const int sender = is_sent ? ranks_.rank_at(rank, visit.stage) : rank;
          keep(rank, {stage, name}, visit.section.pass, bytes_of(from, state, sender));
        }
      }
    }
    count(visit, at);
  }

  void keep(int rank, const StageTensor& place, StagePass pass, double bytes) {
    const auto at = static_cast<std::size_t>(rank);
    if (!lives_.is_known(place)) {
      return;
    }
    if (pass != StagePass::none && lives_.is_of_pass(place)) {
      passing_[at][place.first].held.set(place.second, bytes);
    } else {
      held_[at].set(place, bytes);
    }
  }

  void count(const Visit& visit, std::size_t at) {
    const bool is_pass = visit.section.pass != StagePass::none;
    const std::vector<StageTensor> ended = lives_.ending(at, is_pass);
    for (std::size_t rank = 0; rank < memory_.size(); ++rank) {
      double& most = is_pass ? beside_passes_[rank] : memory_[rank].activations;
      most = std::max(most, held_[rank].sum());
      if (!is_pass) {
        std::for_each(ended.begin(), ended.end(),
                      [&](const StageTensor& place) { held_[rank].erase(place); });
      }
    }
    for (const int rank : ranks_of(visit.stage)) {
      if (is_pass) {
        pass(passing_[static_cast<std::size_t>(rank)][visit.stage], visit, ended);
      }
    }
  }

  static void pass(Passing& passing, const Visit& visit, const std::vector<StageTensor>& ended) {
    const auto number = static_cast<std::size_t>(visit.section.pass);
    passing.most[number] = std::max(passing.most[number], passing.held.sum());
    for (const StageTensor& place : ended) {
      passing.held.erase(place.second);
    }
    passing.left[number] = passing.held.sum();
  }

  // Returns the most that all microbatches together hold on a rank, in the order of its passes.
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
  std::vector<Held<StageTensor>> held_;          // by rank
  std::vector<double> beside_passes_;            // by rank: peak of the memory that belongs to no
                                                 // single microbatch
  std::vector<std::map<int, Passing>> passing_;  // by rank, then by stage
  std::set<std::tuple<int, std::string, int>> counted_;
  Lives lives_;
};

}  // namespace

std::vector<Memory> memory_of(const Step& step) {
  return Measure(step, StepRanks(step)).run();
}

}  // namespace unisono::step
