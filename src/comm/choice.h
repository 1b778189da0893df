// Which algorithm runs when nobody says: built-in defaults for ranks of one host, and the forced
// ones.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "unisono/types.hpp"

namespace unisono::comm {

// `bytes`: count times the size of an element, as in Call.
std::string_view default_algorithm(Collective collective, int ranks, std::size_t bytes);

// "all_reduce=ring,broadcast=binomial". Throws config.
std::map<Collective, std::string> parse_forced(std::string_view text);

// "flat, ring, ...", for messages.
std::string list_algorithms(Collective collective);

}  // namespace unisono::comm
