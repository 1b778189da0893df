// An encoder of BERT's kind (Devlin et al., 2019) laid over the ranks of tp: heads and the hidden
// features of the MLP are cut, and each layer has two all_reduces. Embeddings are read from the
// file by every rank, so that nothing else is sent.
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
  // Collective over `tp`. `tp` and `weights` must outlive the encoder. Errors: those of
  // head_share(), and of the weights.
  Encoder(unisono::Communicator& tp, const EncoderWeights& weights, Precision precision);

  // By text, given as tokens: the mean over the rows of the last layer, of length 1. All ranks call
  // it with the same texts, and get the same. Errors: std::runtime_error, for a text without tokens
  // or of more than the model has positions; as of Communicator::run().
  std::vector<std::vector<float>> embed(std::span<const std::vector<std::int32_t>> texts);

  std::size_t weight_bytes() const;  // of products
  double communication_s() const { return communication_s_; }

 private:
  struct Linear {
    Matrix weight;
    std::vector<float> bias;  // where the inputs are cut it comes behind the sum
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
  Arena arena_;  // of all matrices
  std::vector<Layer> layers_;
  double communication_s_ = 0;
};

}  // namespace llm
