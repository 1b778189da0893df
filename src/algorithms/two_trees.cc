#include "algorithms/two_trees.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace unisono::algorithms {
namespace {

// Returns the parent in the first tree: the middle of the next larger block. If this middle is
// beyond q, returns the middle of the block after that block.
int first_parent(int q, int position) {
  if (position == floor_power_of_two(q)) {
    return 0;
  }
  const int low = position & -position;
  const int up = (position ^ low) | (low << 1);
  return up <= q ? up : position ^ low;
}

// Converts a position of the second tree to its place in the first tree; for even q also the
// reverse.
int to_first(int q, int position) {
  return q % 2 == 0 ? q + 1 - position : position % q + 1;
}
int to_second(int q, int position) {
  return q % 2 == 0 ? q + 1 - position : (position + q - 2) % q + 1;
}

struct Edge {
  int tree = 0;
  int from = 0;
  int to = 0;
  int colour = -1;
};

// Edges that share a sender or a receiver form chains or even circles, along which the two colours
// alternate.
class Colouring {
 public:
  explicit Colouring(int ranks) {
    for (int tree = 0; tree < 2; ++tree) {
      for (int position = 1; position < ranks; ++position) {
        edges_.push_back(
            {.tree = tree, .from = TwoTrees::parent(ranks, tree, position), .to = position});
      }
    }
    out_.resize(static_cast<std::size_t>(ranks), {-1, -1});
    in_.resize(static_cast<std::size_t>(ranks), {-1, -1});
    for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
      add(out_[static_cast<std::size_t>(edges_[edge].from)], static_cast<int>(edge));
      add(in_[static_cast<std::size_t>(edges_[edge].to)], static_cast<int>(edge));
    }
  }

  std::vector<int> out(int position) const {
    std::vector<int> edges;
    for (const int edge : out_[static_cast<std::size_t>(position)]) {
      if (edge >= 0) {
        edges.push_back(edge);
      }
    }
    return edges;
  }

  const Edge& edge(int index) const { return edges_[static_cast<std::size_t>(index)]; }

  // Gives the edge this colour unless it has one, and gives its neighbours the colours that follow
  // from it.
  void colour(int index, int colour) {
    std::deque<std::pair<int, int>> open = {{index, colour}};
    while (!open.empty()) {
      const auto [next, wanted] = open.front();
      open.pop_front();
      Edge& each = edges_[static_cast<std::size_t>(next)];
      if (each.colour >= 0) {
        continue;
      }
      each.colour = wanted;
      for (const auto& pair :
           {out_[static_cast<std::size_t>(each.from)], in_[static_cast<std::size_t>(each.to)]}) {
        for (const int other : pair) {
          if (other >= 0 && other != next) {
            open.emplace_back(other, 1 - wanted);
          }
        }
      }
    }
  }

 private:
  static void add(std::array<int, 2>& pair, int edge) { pair[pair[0] < 0 ? 0 : 1] = edge; }

  std::vector<Edge> edges_;
  std::vector<std::array<int, 2>> out_;
  std::vector<std::array<int, 2>> in_;
};

// Calls visit(from, to, chunk) for the moves of a broadcast, in positions, step by step.
template <typename Visit>
void for_each_move(ScheduleBuilder& schedule, Shape shape, bool backwards, const Visit& visit) {
  const TwoTrees trees(shape.ranks);
  const int segments = shape.parameters.segments;
  const int steps = two_tree_steps(shape);
  struct Planned {
    int from, to, chunk;
  };
  std::vector<std::vector<Planned>> planned(static_cast<std::size_t>(steps));
  for (int tree = 0; tree < 2; ++tree) {
    for (int position = 1; position < shape.ranks; ++position) {
      const int from = TwoTrees::parent(shape.ranks, tree, position);
      for (int chunk = tree; chunk < segments; chunk += 2) {
        const int step = trees.arrival(tree, position) + chunk - tree;
        planned[static_cast<std::size_t>(backwards ? steps - 1 - step : step)].push_back(
            {from, position, chunk});
      }
    }
  }
  for (const std::vector<Planned>& step : planned) {
    schedule.step();
    for (const Planned& each : step) {
      visit(each.from, each.to, each.chunk);
    }
  }
}

}  // namespace

int TwoTrees::parent(int ranks, int tree, int position) {
  const int q = ranks - 1;
  if (tree == 0) {
    return first_parent(q, position);
  }
  const int up = first_parent(q, to_first(q, position));
  return up == 0 ? 0 : to_second(q, up);
}

TwoTrees::TwoTrees(int ranks) {
  for (std::vector<int>& each : arrival_) {
    each.resize(static_cast<std::size_t>(ranks), -1);
  }
  if (ranks > 1) {
    colour(ranks);
  }
}

// Colours from the root down both trees at the same time. An edge that is free to choose takes the
// colour of the step after the arrival at its upper end.
void TwoTrees::colour(int ranks) {
  Colouring colouring(ranks);
  std::deque<int> open;
  for (const int edge : colouring.out(0)) {
    colouring.colour(edge, colouring.edge(edge).tree);
    open.push_back(edge);
  }
  while (!open.empty()) {
    const int index = open.front();
    open.pop_front();
    const int tree = colouring.edge(index).tree;
    const int from = colouring.edge(index).from;
    const int ready = from == 0 ? 0 : arrival(tree, from) + 1;
    colouring.colour(index, ready % 2);
    const Edge& edge = colouring.edge(index);
    const int at = ready + (ready % 2 == edge.colour ? 0 : 1);
    const auto t = static_cast<std::size_t>(tree);
    arrival_[t][static_cast<std::size_t>(edge.to)] = at;
    for (const int below : colouring.out(edge.to)) {
      if (colouring.edge(below).tree == tree) {
        open.push_back(below);
      }
    }
  }
}

int two_tree_segments(int ranks) {
  return 4 * std::max(1, ceil_log2(ranks));
}

// The first chunk reaches the last position of its tree; the second chunk reaches the last position
// of the other tree one or two steps later. The difference depends on the lowest levels, where a
// tree may lack leaves.
int two_tree_steps(Shape shape) {
  const int n = shape.ranks;
  if (n == 1) {
    return 0;
  }
  const int s = shape.parameters.segments;
  const bool is_full = is_power_of_two(n) || n % 4 == 3;
  const bool is_late = is_full || (n % 4 == 0 && s % 2 == 1);
  return s + 2 * ceil_log2(n) - (is_late ? 2 : 3);
}

int two_tree_messages(Shape shape) {
  return two_tree_steps(shape) - (shape.ranks == 3 ? 1 : 0);
}

void broadcast_two_trees(ScheduleBuilder& schedule, Shape shape, std::source_location where) {
  for_each_move(schedule, shape, false, [&](int from, int to, int chunk) {
    schedule.move({.from = to_rank(shape, from), .to = to_rank(shape, to), .chunk = chunk}, where);
  });
}

void reduce_two_trees(ScheduleBuilder& schedule, Shape shape, std::source_location where) {
  for_each_move(schedule, shape, true, [&](int from, int to, int chunk) {
    schedule.move({.from = to_rank(shape, to),
                   .to = to_rank(shape, from),
                   .chunk = chunk,
                   .combine = Combine::reduce},
                  where);
  });
}

bool is_two_tree_edge(Shape shape, int from, int to) {
  const int a = from_root(shape, from);
  const int b = from_root(shape, to);
  return b != 0 && (TwoTrees::parent(shape.ranks, 0, b) == a ||
                    (shape.parameters.segments > 1 && TwoTrees::parent(shape.ranks, 1, b) == a));
}

bool is_two_tree_route(Shape shape, int from, int to, int chunk) {
  const int b = from_root(shape, to);
  return b != 0 && TwoTrees::parent(shape.ranks, chunk % 2, b) == from_root(shape, from);
}

int two_tree_fan_out(Shape shape) {
  const int segments = shape.parameters.segments;
  return shape.ranks <= 3 ? segments : 2 * ((segments + 1) / 2);
}

}  // namespace unisono::algorithms
