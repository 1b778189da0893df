// Steps are run on numbers: every rank on what it has, against one process that has all. What
// verify() accepts must give the same, also of steps that were damaged at random.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "step/decoder.h"
#include "step/json.h"
#include "step/problem.h"
#include "step/verify.h"

namespace unisono::step {
namespace {

using Values = std::vector<double>;  // of a whole tensor; a NaN is not there
using Held = std::map<std::string, Values>;
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

class Interpreter {
 public:
  Interpreter(const Step& step, const parallel::MeshShape& mesh)
      : step_(step), mesh_(mesh), ranks_(static_cast<std::size_t>(mesh.ranks())) {
    for (const Tensor& tensor : step.tensors) {
      if (tensor.kind == Tensor::Kind::activation) {
        continue;
      }
      const Values whole = drawn(tensor.name, count(tensor));
      for (int rank = 0; rank < mesh.ranks(); ++rank) {
        Values part = whole;
        for (const auto& [axis, placement] : tensor.placement) {
          cut(part, tensor, axis, placement, rank);
        }
        memory(rank)[tensor.name] = std::move(part);
      }
    }
    given_ = ranks_;
  }

  // The results on every rank.
  std::vector<Held> run() {
    for (const Section& section : step_.sections) {
      for (int i = 0; i < section.repeat; ++i) {
        for (const Tensor& tensor : step_.tensors) {  // every layer has its own
          if (tensor.is_layered) {
            for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
              ranks_[rank][tensor.name] = given_[rank].at(tensor.name);
            }
          }
        }
        for (const Node& node : section.nodes) {
          run(section, node);
        }
      }
    }
    return std::move(ranks_);
  }

 private:
  static Values drawn(const std::string& name, std::size_t count) {
    std::mt19937_64 random(std::hash<std::string>{}(name));
    Values values(count);
    for (double& value : values) {
      value = 0.5 + static_cast<double>(random() % 1000) / 2000;
    }
    return values;
  }
  Held& memory(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::size_t size(const std::string& dim) const {
    const Dim* const found = step_.find_dim(dim);
    if (found == nullptr) {
      throw std::out_of_range(dim);
    }
    return found->size;
  }
  std::size_t count(const Tensor& tensor) const {
    std::size_t all = 1;
    for (const std::string& dim : tensor.dims) {
      all *= size(dim);
    }
    return all;
  }
  int stage_of(int rank) const {
    return step_.stage_axis.empty() ? 0 : mesh_.coordinate(rank, step_.stage_axis);
  }

  // Dimensions here are cut evenly along one axis alone.
  void cut(Values& values, const Tensor& tensor, const std::string& axis,
           const Placement& placement, int rank) const {
    if (placement.kind != Placement::Kind::shard) {
      return;
    }
    std::size_t stride = 1;
    for (std::size_t i = tensor.dims.size(); i-- > 0 && tensor.dims[i] != placement.dim;) {
      stride *= size(tensor.dims[i]);
    }
    const std::size_t n = size(placement.dim);
    const auto ranks = static_cast<std::size_t>(mesh_.size(axis));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i / stride % n * ranks / n != static_cast<std::size_t>(mesh_.coordinate(rank, axis))) {
        values[i] = kAbsent;
      }
    }
  }

  void run(const Section& section, const Node& node) {
    const std::vector<Held> before = ranks_;
    for (int rank = 0; rank < mesh_.ranks(); ++rank) {
      const bool is_mine = stage_of(rank) == section.stage;
      if (node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast) {
        if (node.kind == Node::Kind::broadcast || stage_of(rank) == section.stage + 1) {
          const auto group = mesh_.group(rank, step_.stage_axis);
          const Held& from =
              before[static_cast<std::size_t>(group[static_cast<std::size_t>(section.stage)])];
          memory(rank)[node.writes.front()] = from.at(node.reads.front());
        }
      } else if (is_mine && node.kind == Node::Kind::compute) {
        for (const std::string& write : node.writes) {
          memory(rank)[write] = compute(node, *step_.find_tensor(write), before, rank);
        }
      } else if (is_mine) {
        for (std::size_t i = 0; i < node.writes.size(); ++i) {
          memory(rank)[node.writes[i]] = moved(node, i, before, rank);
        }
      }
    }
  }

  Values moved(const Node& node, std::size_t i, const std::vector<Held>& before, int rank) const {
    const auto part_of = [&](int member) -> const Values& {
      return before[static_cast<std::size_t>(member)].at(node.reads[i]);
    };
    Values all = part_of(rank);
    if (node.from.kind != Placement::Kind::replicate) {
      const bool adds = node.from.kind == Placement::Kind::partial;
      std::fill(all.begin(), all.end(), adds ? 0 : kAbsent);
      for (const int member : mesh_.group(rank, node.axes)) {
        const Values& part = part_of(member);
        for (std::size_t k = 0; k < all.size(); ++k) {
          all[k] = adds ? all[k] + part[k] : std::isnan(part[k]) ? all[k] : part[k];
        }
      }
    }
    cut(all, *step_.find_tensor(node.writes[i]), node.axes, node.to, rank);
    return all;
  }

  using Place = std::map<std::string, std::size_t>;

  // An element at a place. A dimension that is cut as another one goes with it.
  double element(const std::string& name, const Values& values, const Place& place) const {
    std::size_t at = 0;
    for (const std::string& dim : step_.find_tensor(name)->dims) {
      const auto found = place.find(dim);
      const std::string& like = step_.find_dim(dim)->like;
      const std::size_t index =
          found != place.end() ? found->second : place.at(like) * size(dim) / size(like);
      at = at * size(dim) + index;
    }
    return values[at];
  }

  void for_each(const std::vector<std::string>& dims, Place& place,
                const std::function<void()>& visit, std::size_t i = 0) const {
    if (i == dims.size()) {
      visit();
      return;
    }
    for (std::size_t k = 0; k < size(dims[i]); ++k) {
      place[dims[i]] = k;
      for_each(dims, place, visit, i + 1);
    }
    place.erase(dims[i]);
  }

  static bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  // For each element of the result a sum over the summed dimensions of a term: of a product or a
  // sum of what is read, where that is linear; else of something that depends on all of the other
  // dimensions in no linear way.
  Values compute(const Node& node, const Tensor& written, const std::vector<Held>& before,
                 int rank) const {
    const Held& mine = before[static_cast<std::size_t>(rank)];
    std::vector<std::string> whole;  // neither pointwise nor summed
    std::vector<std::string> summed;
    for (const std::string& read : node.reads) {
      for (const std::string& dim : step_.find_tensor(read)->dims) {
        const std::string& like = step_.find_dim(dim)->like;
        if (has(node.summed, dim) && !has(summed, dim)) {
          summed.push_back(dim);
        } else if (!has(node.pointwise, dim) && !has(node.summed, dim) && !has(whole, dim) &&
                   (like.empty() || (!has(node.pointwise, like) && !has(node.summed, like)))) {
          whole.push_back(dim);
        }
      }
    }
    Values result;
    Place place;
    for_each(written.dims, place,
             [&] { result.push_back(value(node, mine, place, summed, whole)); });
    return result;
  }

  double value(const Node& node, const Held& mine, const Place& out,
               const std::vector<std::string>& summed,
               const std::vector<std::string>& whole) const {
    Place place = out;
    for (const auto& [from, to] : node.renamed) {
      place[from] = out.at(to);
    }
    double sum = 0;
    bool has_any = false;
    for_each(summed, place, [&] {
      const double one = term(node, mine, place, whole);
      if (!std::isnan(one)) {
        sum += one;
        has_any = true;
      }
    });
    return has_any ? sum : kAbsent;
  }

  double term(const Node& node, const Held& mine, const Place& place,
              const std::vector<std::string>& whole) const {
    const bool adds = node.linear == Node::Linear::together;
    double all = adds ? 0 : 1;
    for (const std::string& read : node.reads) {
      const Values& values = mine.at(read);
      std::vector<std::string> own;
      for (const std::string& dim : step_.find_tensor(read)->dims) {
        if (has(whole, dim)) {
          own.push_back(dim);
        }
      }
      double one = 0;
      Place at = place;
      for_each(own, at, [&] {
        const double found = element(read, values, at);
        one += own.empty() ? found : found * found;
      });
      for (const std::string& dim : own) {  // the element itself, where the result has that place
        if (place.contains(dim)) {
          one = element(read, values, place) / (1 + one);
          break;
        }
      }
      all = adds ? all + one : all * one;
    }
    return node.linear == Node::Linear::none ? all / (1 + std::abs(all)) : all;
  }

  const Step& step_;
  const parallel::MeshShape& mesh_;
  std::vector<Held> ranks_;
  std::vector<Held> given_;  // at first
};

estimate::ModelShape tiny() {
  return {.name = "tiny",
          .layers = 2,
          .hidden = 4,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 2,
          .ffn = 4,
          .vocabulary = 4,
          .tied = true};
}

Step tiny_step(const std::string& mesh, bool is_prompt) {
  const int tp = mesh.find("tp=2") == std::string::npos ? 1 : 2;
  DecoderTask task{.candidates = static_cast<std::size_t>(4 / tp)};
  (is_prompt ? task.tokens : task.context) = is_prompt ? 4 : 3;
  Step step = make_decoder_step(tiny(), mesh, task);
  for (Dim& dim : step.dims) {
    dim.size = dim.name == "chosen" ? 4 : dim.size;
  }
  return step;
}

Held run_alone(const Step& step, const std::string& result) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  const std::vector<Held> all = Interpreter(step, mesh).run();
  return {{result, all.front().at(result)}};
}

// "" where every rank has the same as one process.
std::string difference(const Step& step, const Values& wanted) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  std::vector<Held> all;
  try {
    all = Interpreter(step, mesh).run();
  } catch (const std::out_of_range&) {
    return "something is read that is not there";
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto found = all[rank].find("best");
    if (found == all[rank].end() || found->second.size() != wanted.size()) {
      return "rank " + std::to_string(rank) + " has no result";
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!(std::abs(found->second[i] - wanted[i]) <= 1e-9 * std::abs(wanted[i]))) {
        return "rank " + std::to_string(rank) + " has another result";
      }
    }
  }
  return {};
}

const char* const kMeshes[] = {"tp=2", "pp=2", "cp=2", "cp=2,tp=2", "pp=2,cp=2,tp=2"};

TEST(StepNumbers, AllRanksHaveWhatOneProcessHas) {
  for (const bool is_prompt : {true, false}) {
    for (const char* mesh : kMeshes) {
      const Values wanted = run_alone(tiny_step("tp=1", is_prompt), "best").at("best");
      EXPECT_EQ(difference(tiny_step(mesh, is_prompt), wanted), "") << mesh << is_prompt;
    }
  }
}

// One change to one node, tensor or section.
std::string damage(Step& step, std::mt19937_64& random) {
  const auto draw = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
  std::vector<std::pair<std::size_t, std::size_t>> moves;
  for (std::size_t s = 0; s < step.sections.size(); ++s) {
    for (std::size_t i = 0; i < step.sections[s].nodes.size(); ++i) {
      if (step.sections[s].nodes[i].kind != Node::Kind::compute) {
        moves.emplace_back(s, i);
      }
    }
  }
  Section& section = step.sections[draw(step.sections.size())];
  const std::size_t at = draw(section.nodes.size());
  Node& node = section.nodes[at];
  const auto& [s, i] = moves[draw(moves.size())];
  std::vector<Node>& moving = step.sections[s].nodes;
  Node& move = moving[i];
  const Placement kPlacements[] = {replicate(), partial(), shard("rows"), shard("width"),
                                   shard("heads")};
  const char* const kAxes[] = {"pp", "cp", "tp"};
  switch (draw(11)) {
    case 0: {
      const std::string name = move.name;
      moving.erase(moving.begin() + static_cast<std::ptrdiff_t>(i));
      return "without " + name;
    }
    case 1:
      moving.insert(moving.begin() + static_cast<std::ptrdiff_t>(i), Node(move));
      return "twice " + moving[i].name;
    case 2:
      move.axes = kAxes[draw(3)];
      return "over " + move.axes + ": " + move.name;
    case 3:
      move.from = kPlacements[draw(5)];
      return "from " + to_text(move.from) + ": " + move.name;
    case 4:
      move.to = kPlacements[draw(5)];
      return "to " + to_text(move.to) + ": " + move.name;
    case 5: {
      const std::string name = node.name;
      section.nodes.erase(section.nodes.begin() + static_cast<std::ptrdiff_t>(at));
      return "without " + name;
    }
    case 6:
      std::swap(node, section.nodes[draw(section.nodes.size())]);
      return "another order in " + section.name;
    case 7:
      section.stage = static_cast<int>(draw(2));
      return section.name + " on stage " + std::to_string(section.stage);
    case 8: {
      Tensor& tensor = step.tensors[draw(step.tensors.size())];
      if (tensor.placement.empty()) {
        tensor.placement["tp"] = shard(tensor.dims[draw(tensor.dims.size())]);
      } else {
        tensor.placement.clear();
      }
      return tensor.name + " lies otherwise";
    }
    case 9:
      if (node.kind == Node::Kind::compute) {
        node.reads[draw(node.reads.size())] = step.tensors[draw(step.tensors.size())].name;
      }
      return "another input of " + node.name + ": " + node.reads.front() + ", " + node.reads.back();
    default:
      move.by = move.by.empty() ? "ring" : "";
      return "by " + move.by + ": " + move.name;
  }
}

// That results are those of one process: a step that reads another tensor is another step, so it
// is compared with itself on one rank.
Step alone(Step step) {
  step.mesh = "pp=1,cp=1,tp=1";
  step.stage_axis = "";
  for (Section& section : step.sections) {
    section.stage = 0;
    std::erase_if(section.nodes, [](const Node& node) {
      return node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast;
    });
    for (Node& node : section.nodes) {
      if (node.kind == Node::Kind::redistribute) {  // another name for the same
        node.kind = Node::Kind::redistribute;
        node.from = replicate();
        node.to = replicate();
      }
    }
  }
  return step;
}

TEST(StepNumbers, DamagedStepsAreRejectedOrHarmless) {
  constexpr int kMutants = 3000;
  int rejected = 0;
  int harmless = 0;
  int without_sense = 0;
  std::mt19937_64 random(7);
  for (int number = 0; number < kMutants; ++number) {
    const std::string mesh = kMeshes[random() % 5];
    Step step = tiny_step(mesh, random() % 2 == 0);
    const std::string what = damage(step, random);
    if (!problem_of(step).empty() || !verify(step).empty()) {
      ++rejected;
      continue;
    }
    ++harmless;
    SCOPED_TRACE("mutant " + std::to_string(number) + " of " + mesh + ": " + what);
    const Step one = alone(step);
    try {
      EXPECT_EQ(difference(step, run_alone(one, "best").at("best")), "");
    } catch (const std::out_of_range&) {
      ++without_sense;  // a computation of heads that reads none
    }
  }
  EXPECT_GE(rejected, kMutants / 2);
  EXPECT_GE(harmless, kMutants / 10);
  EXPECT_LE(without_sense, kMutants / 500);
}

}  // namespace
}  // namespace unisono::step
