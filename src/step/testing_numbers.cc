#include "step/testing_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

namespace unisono::step {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

Values drawn(const std::string& name, std::size_t count) {
  std::mt19937_64 random(std::hash<std::string>{}(name));
  Values values(count);
  for (double& value : values) {
    value = 0.5 + static_cast<double>(random() % 1000) / 2000;
  }
  return values;
}

}  // namespace

Interpreter::Interpreter(const Step& step, const parallel::MeshShape& mesh)
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

std::vector<Held> Interpreter::run() {
  for (const Section& section : step_.sections) {
    for (int i = 0; i < section.repeat; ++i) {
      for (const Tensor& tensor : step_.tensors) {  // one copy per layer
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

std::size_t Interpreter::size(const std::string& dim) const {
  const Dim* const found = step_.find_dim(dim);
  if (found == nullptr) {
    throw std::out_of_range(dim);
  }
  return found->size;
}

std::size_t Interpreter::count(const Tensor& tensor) const {
  std::size_t all = 1;
  for (const std::string& dim : tensor.dims) {
    all *= size(dim);
  }
  return all;
}

// Dimensions are divided evenly here, along one axis only.
void Interpreter::cut(Values& values, const Tensor& tensor, const std::string& axis,
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

void Interpreter::run(const Section& section, const Node& node) {
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

Values Interpreter::moved(const Node& node, std::size_t i, const std::vector<Held>& before,
                          int rank) const {
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
  if (node.kind != Node::Kind::redistribute) {
    all = routed(node, all);
  } else if (node.by == "first" && rank != mesh_.group(rank, node.axes).front()) {
    std::transform(all.begin(), all.end(), all.begin(), [](double one) { return 0 * one; });
  }
  cut(all, *step_.find_tensor(node.writes[i]), node.axes, node.to, rank);
  return all;
}

// Treats the rows of all ranks as if every expert received them, and adds up the experts' results.
// A router's choice would only change which summands exist, not where they are added.
Values Interpreter::routed(const Node& node, const Values& all) const {
  const Tensor& written = *step_.find_tensor(node.writes.front());
  Node way{.reads = {node.reads.front()},
           .writes = node.writes,
           .linear = Node::Linear::each,
           .renamed = node.renamed};
  for (const std::string& dim : step_.find_tensor(node.reads.front())->dims) {
    const bool is_kept = has_name(written.dims, dim) || node.renamed.contains(dim);
    (is_kept ? way.pointwise : way.summed).push_back(dim);
  }
  return compute(way, written, {Held{{node.reads.front(), all}}}, 0);
}

// Returns the element at a place. A dimension that is cut like another one follows that dimension's
// index.
double Interpreter::element(const std::string& name, const Values& values,
                            const Place& place) const {
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

void Interpreter::for_each(const std::vector<std::string>& dims, Place& place,
                           const std::function<void()>& visit, std::size_t i) const {
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

// Computes each element of the result as a sum of terms over the summed dimensions. If the node is
// linear, a term is a product or a sum of the inputs. Otherwise it depends nonlinearly on all other
// dimensions.
Values Interpreter::compute(const Node& node, const Tensor& written,
                            const std::vector<Held>& before, int rank) const {
  const Held& mine = before[static_cast<std::size_t>(rank)];
  std::vector<std::string> whole;  // dimensions that are neither pointwise nor summed
  std::vector<std::string> summed;
  for (const std::string& read : node.reads) {
    for (const std::string& dim : step_.find_tensor(read)->dims) {
      const std::string& like = step_.find_dim(dim)->like;
      const bool is_of_group = has_name(node.pointwise, dim) && !has_name(written.dims, dim) &&
                               !node.renamed.contains(dim);
      if ((has_name(node.summed, dim) || is_of_group) && !has_name(summed, dim)) {
        summed.push_back(dim);
      } else if (!has_name(node.pointwise, dim) && !has_name(node.summed, dim) &&
                 !has_name(whole, dim) &&
                 (like.empty() ||
                  (!has_name(node.pointwise, like) && !has_name(node.summed, like)))) {
        whole.push_back(dim);
      }
    }
  }
  Values result;
  Place place;
  for_each(written.dims, place, [&] { result.push_back(value(node, mine, place, summed, whole)); });
  return result;
}

// Sums query heads only for the key-value head that they share.
bool Interpreter::is_together(const Place& place) const {
  return std::all_of(place.begin(), place.end(), [&](const auto& one) {
    const std::string& like = step_.find_dim(one.first)->like;
    const auto of = place.find(like);
    return of == place.end() || of->second * size(one.first) / size(like) == one.second;
  });
}

double Interpreter::value(const Node& node, const Held& mine, const Place& out,
                          const std::vector<std::string>& summed,
                          const std::vector<std::string>& whole) const {
  Place place = out;
  for (const auto& [from, to] : node.renamed) {
    place[from] = out.at(to);
  }
  double sum = 0;
  bool has_any = false;
  for_each(summed, place, [&] {
    const double one = is_together(place) ? term(node, mine, place, whole) : kAbsent;
    if (!std::isnan(one)) {
      sum += one;
      has_any = true;
    }
  });
  return has_any ? sum : kAbsent;
}

double Interpreter::term(const Node& node, const Held& mine, const Place& place,
                         const std::vector<std::string>& whole) const {
  const bool adds = node.linear == Node::Linear::together;
  const bool is_linear = node.linear != Node::Linear::none;
  double all = adds ? 0 : 1;
  for (const std::string& read : node.reads) {
    const Values& values = mine.at(read);
    std::vector<std::string> own;
    for (const std::string& dim : step_.find_tensor(read)->dims) {
      if (has_name(whole, dim)) {
        own.push_back(dim);
      }
    }
    double one = 0;
    Place at = place;
    for_each(own, at, [&] {
      const double found = element(read, values, at);
      one += own.empty() || is_linear ? found : found * found;
    });
    for (const std::string& dim : own) {  // use the element itself if the result has its place
      if (!is_linear && place.contains(dim)) {
        one = element(read, values, place) / (1 + one);
        break;
      }
    }
    all = adds ? all + one : all * one;
  }
  return is_linear ? all : all / (1 + std::abs(all));
}

}  // namespace unisono::step
