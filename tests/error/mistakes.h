// The mistakes of users that the library must answer with a sentence.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::testing {

struct Mistake {
  std::string name;  // of the file with the expected text
  int ranks = 2;
  std::function<void(Communicator&)> make;  // on every rank; a barrier follows
  int timeout_ms = 60'000;
  std::string algorithm = {};  // forced for the world
};

std::vector<Mistake> argument_mistakes();      // refused by the rank that makes them
std::vector<Mistake> disagreement_mistakes();  // seen by all ranks
std::vector<Mistake> order_mistakes();         // calls that should not be, or do not come

}  // namespace unisono::testing
