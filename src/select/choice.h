// Which algorithm runs when nobody says: built-in defaults for ranks of one host, and the forced
// ones.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "unisono/call.hpp"
#include "unisono/types.hpp"

namespace unisono::comm {

// The bytes of an element of the call while it is moved and summed.
std::size_t moved_size(const Call& call);

// `bytes`: count times the size of a moved element. Sums in the order of the ranks.
std::string_view default_algorithm(Collective collective, int ranks, std::size_t bytes);

// The larger of what a rank sends and receives in all, as the models count; nothing where the ranks
// do not know the same of it (all_to_all_v).
std::optional<double> vector_bytes(const Call& call, int ranks);

// In the place of an algorithm: one of those that sum in the order of the ranks, whose results have
// the same bits wherever the ranks are and however long the vector is.
inline constexpr std::string_view kReproducible = "reproducible";

// "all_reduce=ring,broadcast=binomial"; "reproducible" alone stands for all that reduce. Throws
// config.
std::map<Collective, std::string> parse_forced(std::string_view text);

// Why find_algorithm() has none of that name for the collective, for messages.
std::string unfit_algorithm(Collective collective, std::string_view name);

// "flat, ring, ...", for messages.
std::string list_algorithms(Collective collective);

}  // namespace unisono::comm
