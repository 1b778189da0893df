// The numbers of an encoder of BERT's kind, from a folder of Hugging Face with config.json and
// safetensors.
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
  std::size_t positions = 0;  // the most tokens of a text
  float epsilon = 1e-12F;
};

// Returns true if the folder's config.json describes an encoder; false if it is not a folder.
bool is_encoder(const std::string& folder);

class EncoderWeights {
 public:
  // Errors: std::runtime_error with the file and its mistake.
  explicit EncoderWeights(const std::string& folder);
  const EncoderShape& shape() const { return shape_; }
  // A part of a matrix [outputs, inputs], or of a vector, which has one row. Names are those of
  // BertModel in Hugging Face transformers.
  std::vector<float> read(const std::string& name, unisono::parallel::Range rows,
                          unisono::parallel::Range columns) const;

 private:
  void check(std::size_t types) const;

  SafetensorsFolder files_;
  std::string prefix_;  // of models that were trained with a head on top
  EncoderShape shape_;
};

}  // namespace llm
