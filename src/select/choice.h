// The algorithm of a call without measurements: the built-in defaults for ranks on one host, and
// forced algorithms.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "unisono/call.hpp"
#include "unisono/types.hpp"

namespace unisono::comm {

// Returns the size of the call's elements while they are moved and summed.
std::size_t moved_size(const Call& call);

// Returns the built-in default. `bytes`: count times the size of a moved element. The algorithm
// sums in rank order.
std::string_view default_algorithm(Collective collective, int ranks, std::size_t bytes,
                                   bool in_order = false);

// Returns the larger of the bytes that a rank sends and receives in total, as the models count
// them; nothing if the ranks do not know the same value (all_to_all_v).
std::optional<double> vector_bytes(const Call& call, int ranks);

// A name to give instead of an algorithm: chooses one that sums in rank order. Its results have the
// same bits on any hosts and for any vector length.
inline constexpr std::string_view kReproducible = "reproducible";

// Returns true for "reproducible" and "tree_order", whose results must not depend on the hosts.
bool has_fixed_order(std::string_view name);

// Parses "all_reduce=ring,broadcast=binomial"; "reproducible" or "tree_order" alone applies to all
// reducing collectives. Throws config.
std::map<Collective, std::string> parse_forced(std::string_view text);

// Returns why find_algorithm() has no algorithm of that name for the collective, for messages.
std::string unfit_algorithm(Collective collective, std::string_view name);

// Returns "flat, ring, ...", for messages.
std::string list_algorithms(Collective collective);

}  // namespace unisono::comm
