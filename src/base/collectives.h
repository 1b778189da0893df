// The properties of each collective, in one table.
//
// A new collective needs a value in unisono/types.hpp, a row here, an algorithm in src/algorithms,
// and public functions. If its result has a new meaning, extend contributes() as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unisono/types.hpp"

namespace unisono {

// The part of the collective's vector that a rank holds before or after the call.
enum class Holding : std::uint8_t {
  nothing,        // only a token that reports arrival
  whole,          // every rank: the whole vector
  whole_at_root,  // the root: the whole vector; the others: nothing
  part,           // rank r: part r of one part per rank
  pairs           // a part for each rank (input), or from each rank (output)
};

// The ranks whose inputs are in the result of rank r.
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
// Returns true for scan and exclusive_scan, whose results cover different inputs on each rank.
constexpr bool is_scan(Collective collective) {
  return traits_of(collective).terms != Terms::all;
}
// Returns true if the result of rank `to` includes the input of rank `from`. The verifier proves
// schedules against this definition, and the bench checks results with it.
constexpr bool contributes(Collective collective, int from, int to) {
  const Terms terms = traits_of(collective).terms;
  return terms == Terms::all || from < to || (terms == Terms::through_own && from == to);
}
constexpr bool moves_data(Collective collective) {
  return traits_of(collective).input != Holding::nothing;
}
// Returns true if every rank ends with one value to which every rank contributed. Data then crosses
// each link once to be combined and once to be distributed.
constexpr bool goes_both_ways(Collective collective) {
  const CollectiveTraits& traits = traits_of(collective);
  return traits.input == traits.output && traits.input != Holding::pairs && !is_scan(collective);
}

// Division of the vector: none, one part per rank, or one part per pair of ranks.
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
// vector that a port carries if no data is sent twice. Returns 1 if there is no vector.
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
