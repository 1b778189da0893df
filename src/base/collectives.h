// The properties of each collective, in one table.
//
// A new collective is its value in unisono/types.hpp, a row here, an algorithm in src/algorithms,
// and its public functions. One whose result means something new says so here, too: contributes().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unisono/types.hpp"

namespace unisono {

// The part of the collective's vector that a rank has, before or after.
enum class Holding : std::uint8_t {
  nothing,        // only the token that says that it has arrived
  whole,          // every rank: all
  whole_at_root,  // the root: all; the others: nothing
  part,           // rank r: the r-th of as many parts as there are ranks
  pairs           // a part for each other rank (input), or from each (output)
};

// The ranks whose inputs rank r's result has.
enum class Terms : std::uint8_t { all, through_own, before_own };

struct CollectiveTraits {
  Collective collective;
  std::string_view name;
  Collective plain;  // the plain form of a v-form; itself otherwise
  Holding input;
  Holding output;
  bool reduces = false;
  Terms terms = Terms::all;
};

inline constexpr std::array<CollectiveTraits, kCollectiveCount> kCollectives = {{
    {Collective::broadcast, "broadcast", Collective::broadcast, Holding::whole_at_root,
     Holding::whole},
    {Collective::scatter, "scatter", Collective::scatter, Holding::whole_at_root, Holding::part},
    {Collective::gather, "gather", Collective::gather, Holding::part, Holding::whole_at_root},
    {Collective::reduce, "reduce", Collective::reduce, Holding::whole, Holding::whole_at_root,
     true},
    {Collective::all_reduce, "all_reduce", Collective::all_reduce, Holding::whole, Holding::whole,
     true},
    {Collective::all_gather, "all_gather", Collective::all_gather, Holding::part, Holding::whole},
    {Collective::reduce_scatter, "reduce_scatter", Collective::reduce_scatter, Holding::whole,
     Holding::part, true},
    {Collective::all_to_all, "all_to_all", Collective::all_to_all, Holding::pairs, Holding::pairs},
    {Collective::barrier, "barrier", Collective::barrier, Holding::nothing, Holding::nothing},
    {Collective::scatter_v, "scatter_v", Collective::scatter, Holding::whole_at_root,
     Holding::part},
    {Collective::gather_v, "gather_v", Collective::gather, Holding::part, Holding::whole_at_root},
    {Collective::all_gather_v, "all_gather_v", Collective::all_gather, Holding::part,
     Holding::whole},
    {Collective::reduce_scatter_v, "reduce_scatter_v", Collective::reduce_scatter, Holding::whole,
     Holding::part, true},
    {Collective::all_to_all_v, "all_to_all_v", Collective::all_to_all, Holding::pairs,
     Holding::pairs},
    {Collective::scan, "scan", Collective::scan, Holding::whole, Holding::whole, true,
     Terms::through_own},
    {Collective::exclusive_scan, "exclusive_scan", Collective::exclusive_scan, Holding::whole,
     Holding::whole, true, Terms::before_own},
}};

// REQUIRES: a value of the enumeration.
constexpr const CollectiveTraits& traits_of(Collective collective) {
  return kCollectives.at(static_cast<std::size_t>(collective));
}

constexpr bool is_rooted(Collective collective) {
  const CollectiveTraits& traits = traits_of(collective);
  return traits.input == Holding::whole_at_root || traits.output == Holding::whole_at_root;
}
constexpr Collective plain_form(Collective collective) {
  return traits_of(collective).plain;
}
constexpr bool is_v_form(Collective collective) {
  return plain_form(collective) != collective;
}
constexpr bool reduces(Collective collective) {
  return traits_of(collective).reduces;
}
// Returns true if the ranks' results are over different ranks: scan and exclusive_scan.
constexpr bool is_scan(Collective collective) {
  return traits_of(collective).terms != Terms::all;
}
// Returns true if rank `to`'s result includes the input of rank `from`. The verifier proves it, and
// the bench checks results with it.
constexpr bool contributes(Collective collective, int from, int to) {
  const Terms terms = traits_of(collective).terms;
  return terms == Terms::all || from < to || (terms == Terms::through_own && from == to);
}
constexpr bool moves_data(Collective collective) {
  return traits_of(collective).input != Holding::nothing;
}
// Something of every rank comes to every rank in one piece, which takes a way there and one back.
constexpr bool goes_both_ways(Collective collective) {
  const CollectiveTraits& traits = traits_of(collective);
  return traits.input == traits.output && traits.input != Holding::pairs && !is_scan(collective);
}

// The division of the vector: none, a part for each rank, or a part for each pair of ranks.
enum class VectorCut : std::uint8_t { none, parts, pairs };

constexpr VectorCut cut_of(Collective collective) {
  const CollectiveTraits& traits = traits_of(collective);
  if (traits.input == Holding::pairs) {
    return VectorCut::pairs;
  }
  return traits.input == Holding::part || traits.output == Holding::part ? VectorCut::parts
                                                                         : VectorCut::none;
}

// Returns bus bandwidth divided by algorithm bandwidth, S/t, as in nccl-tests: the share of the
// vector that a port carries if nothing is sent twice; 1 if there is no vector.
constexpr double bus_factor(Collective collective, int ranks) {
  if (!moves_data(collective)) {
    return 1;
  }
  const double others = 1.0 * (ranks - 1) / ranks;
  return goes_both_ways(collective)              ? 2 * others
         : cut_of(collective) == VectorCut::none ? 1
                                                 : others;
}

}  // namespace unisono
