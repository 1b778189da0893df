// A BERT encoder (Devlin et al., 2019) distributed over the tp ranks. Heads and the MLP's hidden
// features are sharded, and each layer has two all_reduces. Every rank reads the embeddings from
// the file, so there is no other communication.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unisono/communicator.hpp>
#include <unisono/parallel/tensor_parallel.hpp>
#include <vector>

#include "encoder_weights.h"
#include "matrix.h"

namespace llm {

class Encoder {
 public:
  // Collective over `tp`. `tp` and `weights` must outlive the encoder. Errors: errors of
  // head_share() and of the weights.
  Encoder(unisono::Communicator& tp, const EncoderWeights& weights, Precision precision);

  // Returns a vector of length 1 per text, given as tokens: the mean over the rows of the last
  // layer. Collective over `tp`, with the same texts on all ranks; all ranks get the same vectors.
  // Errors: std::runtime_error for a text without tokens or with more tokens than the model has
  // positions; errors of Communicator::run().
  std::vector<std::vector<float>> embed(std::span<const std::vector<std::int32_t>> texts);

  std::size_t weight_bytes() const;  // bytes of the product matrices
  double communication_s() const { return communication_s_; }

 private:
  struct Linear {
    Matrix weight;
    std::vector<float> bias;  // added after the sum if inputs are sharded
  };
  struct Norm {
    std::vector<float> gain, bias;
  };
  struct Layer {
    Linear q, k, v, o, up, down;
    Norm after_attention, after_mlp;
  };
  using Texts = std::span<const std::vector<std::int32_t>>;

  Linear cut_outputs(const std::string& name, unisono::parallel::Range outputs);
  Linear cut_inputs(const std::string& name, unisono::parallel::Range inputs);
  Norm norm(const std::string& name) const;
  std::vector<float> embeddings(Texts texts) const;
  std::vector<float> attend(const Layer& layer, Texts texts, std::span<const float> x) const;
  std::vector<float> attention(const Layer& layer, Texts texts, std::span<const float> x) const;
  std::vector<float> mlp(const Layer& layer, std::span<const float> x) const;
  void add_sum(std::span<float> part, const Linear& from, const Norm& norm, std::span<float> x);

  unisono::Communicator& tp_;
  const EncoderWeights& weights_;
  Precision precision_;
  EncoderShape shape_;
  unisono::parallel::HeadShare share_;
  unisono::parallel::Range hidden_;
  Norm first_norm_;
  Arena arena_;  // memory of all matrices
  std::vector<Layer> layers_;
  double communication_s_ = 0;
};

}  // namespace llm
