// User mistakes that the library must answer with an error text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::testing {

struct Mistake {
  std::string name;  // name of the file with the expected text
  int ranks = 2;
  std::function<void(Communicator&)> make;  // on every rank; a barrier follows
  int timeout_ms = 60'000;
  std::string algorithm = {};  // forced for the world
};

std::vector<Mistake> argument_mistakes();      // refused on the rank that makes them
std::vector<Mistake> disagreement_mistakes();  // detected by all ranks
std::vector<Mistake> order_mistakes();         // invalid or missing calls

}  // namespace unisono::testing
