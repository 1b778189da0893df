// Describes the weights of a quantised checkpoint.
#pragma once

#include <string>

#include "planner/precision.h"

namespace unisono::planner {

// Mean bytes per weight of each part, including scales: 2 if the part is not quantised.
struct StoredWeights {
  std::string name = {};  // such as "mxfp4"
  double attention = 2;
  double dense = 2;
  double shared = 2;  // experts that every token visits, and the router
  double experts = 2;
  double ends = 2;                         // embedding, head, norms and biases
  Precision multiplied = Precision::bf16;  // type of the activations multiplied with these weights
  Precision cache = Precision::bf16;       // of keys and values
  std::string plain_parts = {};            // parts that are not quantised: "attention, router"
};

}  // namespace unisono::planner
