// Compositions of catalogue algorithms: the composed schedules must be correct, whatever their
// parts are.
#include "schedule/compose.h"
#include "schedule/verify.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "algorithms/catalog.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

std::string finding_texts(const std::vector<Finding>& findings) {
  std::string result;
  for (const Finding& finding : findings) {
    result += "\n  " + to_text(finding, 0);
  }
  return result;
}

Schedule catalogued(Collective collective, std::string_view name, int ranks) {
  return build_schedule(*find_algorithm(collective, name), {.ranks = ranks});
}

// Returns `size` ranks from `first` on, each `stride` after the previous one.
std::vector<int> ranks_from(int first, int size, int stride) {
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) {
    ranks.push_back(first + i * stride);
  }
  return ranks;
}

struct Names {
  std::string_view reduce_scatter;
  std::string_view all_reduce;
  std::string_view all_gather;
};

// Ranks are numbered node by node, `local` ranks per node.
class Hierarchy {
 public:
  Hierarchy(int nodes, int local) : nodes_(nodes), local_(local) {}

  Schedule all_reduce(const Names& names) const {
    const Schedule across = catalogued(Collective::all_reduce, names.all_reduce, nodes_);
    Placement place{.collective = Collective::all_reduce,
                    .ranks = nodes_ * local_,
                    .chunks = local_ * across.chunks};
    // Local rank l works on chunk l of its node; this chunk is as many chunks as the nodes need.
    place.width = place.stride = across.chunks;
    place.begins = true;
    const Schedule first =
        in_nodes(catalogued(Collective::reduce_scatter, names.reduce_scatter, local_), place);
    place.begins = false;
    const Schedule last =
        in_nodes(catalogued(Collective::all_gather, names.all_gather, local_), place);

    std::optional<Schedule> middle;
    place.width = place.stride = 1;
    for (int l = 0; l < local_; ++l) {
      place.members = ranks_from(l, nodes_, local_);
      place.first_chunk = l * across.chunks;
      join(middle, sub(across, place));
    }
    return then(then(first, *middle), last);
  }

  // Composes reduce_scatter inside the nodes and then across them, and all_gather back.
  Schedule all_reduce_in_halves(std::string_view reduce_scatter) const {
    Placement place{
        .collective = Collective::all_reduce, .ranks = nodes_ * local_, .chunks = nodes_ * local_};
    place.width = place.stride = nodes_;
    place.begins = true;
    const Schedule first =
        in_nodes(catalogued(Collective::reduce_scatter, reduce_scatter, local_), place);
    place.begins = false;
    const Schedule last = in_nodes(catalogued(Collective::all_gather, "bruck", local_), place);
    std::optional<Schedule> sums;
    std::optional<Schedule> parts;
    place.width = place.stride = 1;
    for (int l = 0; l < local_; ++l) {
      place.members = ranks_from(l, nodes_, local_);
      place.first_chunk = l * nodes_;
      join(sums, sub(catalogued(Collective::reduce_scatter, reduce_scatter, nodes_), place));
      join(parts, sub(catalogued(Collective::all_gather, "ring", nodes_), place));
    }
    return then(then(first, *sums), then(*parts, last));
  }

 private:
  Schedule in_nodes(const Schedule& schedule, Placement place) const {
    std::optional<Schedule> whole;
    for (int node = 0; node < nodes_; ++node) {
      place.members = ranks_from(node * local_, local_, 1);
      join(whole, sub(schedule, place));
    }
    return *whole;
  }

  static void join(std::optional<Schedule>& whole, const Schedule& part) {
    whole = whole ? beside(*whole, part) : part;
  }

  int nodes_;
  int local_;
};

TEST(Compose, MakesAHierarchicalAllReduceOfAnyParts) {
  int wholes = 0;
  for (const Algorithm* a : catalog()) {
    for (const Algorithm* b : catalog()) {
      for (const Algorithm* c : catalog()) {
        if (a->collective != Collective::reduce_scatter ||
            b->collective != Collective::all_reduce || c->collective != Collective::all_gather) {
          continue;
        }
        for (const auto& [nodes, local] :
             {std::pair{2, 2}, {3, 2}, {2, 3}, {5, 3}, {1, 4}, {4, 1}}) {
          if (!can_serve(*a, {.ranks = local}) || !can_serve(*b, {.ranks = nodes}) ||
              !can_serve(*c, {.ranks = local})) {
            continue;
          }
          const Schedule whole = Hierarchy(nodes, local).all_reduce({a->name, b->name, c->name});
          const std::string what = std::string(a->name) + " " + std::string(b->name) + " " +
                                   std::string(c->name) + " " + std::to_string(nodes) + "x" +
                                   std::to_string(local);
          EXPECT_EQ(finding_texts(verify(whole)), "") << what;
          EXPECT_EQ(finding_texts(verify_in_place(whole)), "") << what;
          ++wholes;
        }
      }
    }
  }
  EXPECT_GE(wholes, 3 * 5 * 4 * 6);
}

// The second reduce_scatter sums in scratch that the first one has already used.
TEST(Compose, StartsSumsInScratchAfresh) {
  for (const std::string_view name : {"ring", "recursive_halving", "flat"}) {
    for (const auto& [nodes, local] : {std::pair{3, 3}, {4, 3}, {3, 5}, {5, 1}}) {
      const Schedule whole = Hierarchy(nodes, local).all_reduce_in_halves(name);
      EXPECT_EQ(finding_texts(verify(whole)), "") << name << " " << nodes << "x" << local;
      EXPECT_EQ(finding_texts(verify_in_place(whole)), "") << name << " " << nodes << "x" << local;
    }
  }
}

TEST(Compose, SendsLessAcrossNodesThanAFlatRing) {
  const Schedule whole = Hierarchy(4, 4).all_reduce({"ring", "ring", "ring"});
  int across = 0;
  for (const Move& move : whole.moves) {
    across += move.from / 4 != move.to / 4 ? move.chunks : 0;
  }
  // 16 ranks send 2*3 chunks of 16 each to other nodes.
  EXPECT_EQ(whole.chunks, 16);
  EXPECT_EQ(across, 16 * 6);
  EXPECT_EQ(whole.steps, 3 + 6 + 3);
}

// Gathers parts inside the nodes first, then whole nodes across: chunks move in ranges.
TEST(Compose, MakesAHierarchicalAllGather) {
  constexpr int kNodes = 3;
  constexpr int kLocal = 2;
  Placement place{
      .collective = Collective::all_gather, .ranks = kNodes * kLocal, .chunks = kNodes * kLocal};
  std::optional<Schedule> inside;
  for (int node = 0; node < kNodes; ++node) {
    place.members = ranks_from(node * kLocal, kLocal, 1);
    place.first_chunk = node * kLocal;
    place.begins = true;
    const Schedule part = sub(catalogued(Collective::all_gather, "flat", kLocal), place);
    inside = inside ? beside(*inside, part) : part;
  }
  place.begins = false;
  place.first_chunk = 0;
  place.width = place.stride = kLocal;
  std::optional<Schedule> across;
  for (int l = 0; l < kLocal; ++l) {
    place.members = ranks_from(l, kNodes, kLocal);
    const Schedule part = sub(catalogued(Collective::all_gather, "bruck", kNodes), place);
    across = across ? beside(*across, part) : part;
  }
  const Schedule whole = then(*inside, *across);
  EXPECT_EQ(finding_texts(verify(whole)), "");
  EXPECT_EQ(finding_texts(verify_in_place(whole)), "");
  EXPECT_NE(finding_texts(verify(*inside)), "");
}

// A tree of trees: ranks hold their sums in scratch between the composed parts.
TEST(Compose, MakesAHierarchicalReduce) {
  constexpr int kNodes = 4;
  constexpr int kLocal = 3;
  Placement place{.collective = Collective::reduce, .ranks = kNodes * kLocal, .chunks = 1};
  std::optional<Schedule> inside;
  for (int node = 0; node < kNodes; ++node) {
    place.members = ranks_from(node * kLocal, kLocal, 1);
    place.begins = true;
    const Schedule part = sub(catalogued(Collective::reduce, "binomial", kLocal), place);
    inside = inside ? beside(*inside, part) : part;
  }
  place.begins = false;
  place.members = ranks_from(0, kNodes, kLocal);
  const Schedule whole =
      then(*inside, sub(catalogued(Collective::reduce, "binomial", kNodes), place));
  EXPECT_EQ(finding_texts(verify(whole)), "");
  EXPECT_EQ(finding_texts(verify_in_place(whole)), "");
}

TEST(Compose, ShiftsAndMergesPhases) {
  const Schedule whole = Hierarchy(2, 2).all_reduce({"ring", "ring", "recursive_doubling"});
  ASSERT_EQ(whole.phases.size(), 3U);
  EXPECT_EQ(whole.phases[0].name, "reduce_scatter");
  EXPECT_EQ(whole.phases[0].first_step, 1);
  EXPECT_EQ(whole.phases[1].name, "all_gather");
  EXPECT_EQ(whole.phases[1].first_step, 2);
  EXPECT_EQ(whole.phases[2].name, "exchange");
  EXPECT_EQ(whole.phases[2].first_step, 3);
  EXPECT_EQ(whole.file, "");
  EXPECT_EQ(whole.moves[0].line, 0U);
}

TEST(Compose, PlacesRangesAtTheirStride) {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 2, .chunks = 2}};
  builder.move({.from = 0, .to = 1, .chunks = 2});
  const Schedule pair = std::move(builder).build();
  Placement place{.collective = Collective::broadcast, .ranks = 4, .chunks = 8, .members = {3, 1}};
  place.first_chunk = 1;
  place.stride = 4;
  place.width = 2;
  const Schedule apart = sub(pair, place);
  ASSERT_EQ(apart.moves.size(), 2U);
  EXPECT_EQ(apart.moves[0].from, 3);
  EXPECT_EQ(apart.moves[0].to, 1);
  EXPECT_EQ(apart.moves[0].chunk, 1);
  EXPECT_EQ(apart.moves[0].chunks, 2);
  EXPECT_EQ(apart.moves[1].chunk, 5);
  place.stride = 2;
  const Schedule joined = sub(pair, place);
  ASSERT_EQ(joined.moves.size(), 1U);
  EXPECT_EQ(joined.moves[0].chunks, 4);
}

TEST(Compose, RefusesWhatDoesNotFit) {
  const Schedule ring = catalogued(Collective::all_reduce, "ring", 3);
  Placement place{.collective = Collective::all_reduce, .ranks = 4, .chunks = 3};
  place.members = {0, 1, 2};
  EXPECT_NO_THROW(sub(ring, place));
  for (const std::vector<int>& members :
       {std::vector{0, 1}, {0, 1, 1}, {0, 1, 4}, {-1, 1, 2}, std::vector<int>{}}) {
    place.members = members;
    EXPECT_THROW(sub(ring, place), Error);
  }
  place.members = {0, 1, 2};
  place.first_chunk = 1;
  EXPECT_THROW(sub(ring, place), Error);
  place.first_chunk = 0;
  place.width = 0;
  EXPECT_THROW(sub(ring, place), Error);
  EXPECT_THROW(then(ring, catalogued(Collective::all_reduce, "ring", 4)), Error);
  EXPECT_THROW(beside(ring, catalogued(Collective::all_gather, "ring", 3)), Error);
}

}  // namespace
}  // namespace unisono
