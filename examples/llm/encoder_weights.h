// Weights of a BERT encoder, from a Hugging Face folder with config.json and safetensors.
#pragma once

#include <cstddef>
#include <string>
#include <unisono/parallel/placement.hpp>
#include <vector>

#include "safetensors.h"

namespace llm {

struct EncoderShape {
  std::size_t layers = 0;
  std::size_t width = 0;
  std::size_t heads = 0;
  std::size_t dim = 0;
  std::size_t hidden = 0;
  std::size_t vocabulary = 0;
  std::size_t positions = 0;  // maximum number of tokens in a text
  float epsilon = 1e-12F;
};

// Returns true if `folder` is a folder whose config.json describes an encoder.
bool is_encoder(const std::string& folder);

class EncoderWeights {
 public:
  // Errors: std::runtime_error with the file and its mistake.
  explicit EncoderWeights(const std::string& folder);
  const EncoderShape& shape() const { return shape_; }
  // Returns a part of a matrix [outputs, inputs], or of a vector, which has one row. Uses the names
  // of BertModel in Hugging Face transformers.
  std::vector<float> read(const std::string& name, unisono::parallel::Range rows,
                          unisono::parallel::Range columns) const;

 private:
  void check(std::size_t types) const;

  SafetensorsFolder files_;
  std::string prefix_;  // set for models that were trained with a head on top
  EncoderShape shape_;
};

}  // namespace llm
