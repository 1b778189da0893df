// Describes the weights of a quantised checkpoint.
#pragma once

#include <string>

#include "planner/precision.h"

namespace unisono::planner {

// Bytes that a weight of a part takes in the mean, its scales included: 2 where it is not
// quantised.
struct StoredWeights {
  std::string name = {};  // "mxfp4"
  double attention = 2;
  double dense = 2;
  double shared = 2;  // experts that every token visits, and the router
  double experts = 2;
  double ends = 2;                         // embedding, head, norms and biases
  Precision multiplied = Precision::bf16;  // of activations with these weights
  Precision cache = Precision::bf16;       // of keys and values
  std::string plain_parts = {};            // "attention, router": what is not quantised
};

}  // namespace unisono::planner
