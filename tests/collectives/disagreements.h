// Ranks that disagree on one call, drawn at random: what each rank calls, and what comes next.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "case.h"
#include "draw_case.h"
#include "unisono/call.hpp"

namespace unisono::testing {

// Names what the calls differ in. The last two differ in a message between two ranks instead.
enum class Field : std::uint8_t {
  nothing,  // only in what is each rank's own matter
  collective,
  dtype,
  op,
  factor,
  count,
  root,
  counts,
  algorithm,
  max_error,
  parts,  // what group() makes one call of
  calls,  // one rank makes one more
  bytes,
  tag,
};
constexpr std::array kFields = {"nothing", "collective", "dtype",  "op",        "factor",
                                "count",   "root",       "counts", "algorithm", "max_error",
                                "parts",   "calls",      "bytes",  "tag"};
enum class Then : std::uint8_t { leave, collective, exchange, message, group, split };
constexpr std::array kThens = {"leave",   "a collective", "an exchange", "messages one way",
                               "a group", "a split"};

// A call: a case, and what a case does not say.
struct Made {
  Case one;
  double factor = 1;  // times the factor of the case
  double max_error = kInheritedMaxError;
  std::size_t cut = 0;  // made of two calls in group(), of this many elements and the others
  int more = -1;        // a v-form: of this rank's part one element more,
  int less = -1;        // and of this one's one less

  bool moves_nothing() const;
  // False if the oracle knows only the case, not the call.
  bool has_oracle() const { return factor == 1 && max_error < 0 && cut == 0 && more < 0; }
};

struct Disagreement {
  int ranks = 2;
  int members = 2;  // of the group that disagrees: the first ones
  Field field = Field::nothing;
  Made common;
  std::map<int, Made> others;  // [rank]
  Then then = Then::leave;
  Case next;
  std::uint64_t own = 0;  // seed of what is each rank's own matter

  const Made& of(int rank) const;
  bool is_message() const { return field == Field::bytes || field == Field::tag; }
  int sender() const { return others.begin()->first; }
  int receiver() const { return (sender() + 1) % members; }
  bool has_registered_memory() const;
  // True if nobody can know of a disagreement: no call moves a byte.
  bool moves_nothing() const;
  // True if each rank's result depends on all ranks, so that none may return from its call.
  bool ends_all_in_the_call() const;
};

Disagreement draw_disagreement(std::uint64_t seed);
std::string to_text(const Disagreement& trial);
// The call as `rank` makes it, which draws its own matter itself.
Case as_made_by(int rank, const Case& one, std::uint64_t own);

}  // namespace unisono::testing
