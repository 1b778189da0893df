#include "encoder_weights.h"

#include <filesystem>

#include "config.h"

namespace llm {
namespace {

namespace up = unisono::parallel;

void must_be(const Config& config, const char* key, const std::string& wanted) {
  if (config.has(key) && config.text(key) != wanted) {
    config.fail(std::string("has another '") + key + "' than " + wanted);
  }
}

EncoderShape shape_of(const Config& config) {
  must_be(config, "hidden_act", "gelu");
  must_be(config, "position_embedding_type", "absolute");
  config.must_be_off("is_decoder");
  EncoderShape shape{.layers = config.count("num_hidden_layers"),
                     .width = config.count("hidden_size"),
                     .heads = config.count("num_attention_heads"),
                     .hidden = config.count("intermediate_size"),
                     .vocabulary = config.count("vocab_size"),
                     .positions = config.count("max_position_embeddings"),
                     .epsilon = config.number_or("layer_norm_eps", 1e-12F)};
  if (shape.width % shape.heads != 0) {
    config.fail("has a 'hidden_size' that 'num_attention_heads' does not divide");
  }
  shape.dim = shape.width / shape.heads;
  return shape;
}

// Checks that sentence-transformers' settings ask for the mean. Does nothing for other folders.
void must_take_mean(const std::string& folder) {
  const std::string name = "1_Pooling/config.json";
  if (!std::filesystem::exists(folder + "/" + name)) {
    return;
  }
  const Config config(folder, name);
  for (const char* other :
       {"cls_token", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"}) {
    config.must_be_off((std::string("pooling_mode_") + other).c_str());
  }
}

}  // namespace

bool is_encoder(const std::string& folder) {
  return std::filesystem::exists(folder + "/config.json") &&
         Config(folder).text("model_type") == "bert";
}

EncoderWeights::EncoderWeights(const std::string& folder) : files_(folder) {
  const Config config(folder);
  shape_ = shape_of(config);
  must_take_mean(folder);
  if (files_.tensors().has("bert.embeddings.word_embeddings.weight")) {
    prefix_ = "bert.";
  }
  check(config.count_or("type_vocab_size", 2));
}

void EncoderWeights::check(std::size_t types) const {
  const auto is = [&](const std::string& name, std::size_t rows, std::size_t columns) {
    files_.tensors().must_be(prefix_ + name, rows, columns);
  };
  const auto norm = [&](const std::string& name) {
    is(name + ".LayerNorm.weight", 1, shape_.width);
    is(name + ".LayerNorm.bias", 1, shape_.width);
  };
  const auto linear = [&](const std::string& name, std::size_t outputs, std::size_t inputs) {
    is(name + ".weight", outputs, inputs);
    is(name + ".bias", 1, outputs);
  };
  is("embeddings.word_embeddings.weight", shape_.vocabulary, shape_.width);
  is("embeddings.position_embeddings.weight", shape_.positions, shape_.width);
  is("embeddings.token_type_embeddings.weight", types, shape_.width);
  norm("embeddings");
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    const std::string layer = "encoder.layer." + std::to_string(i) + ".";
    for (const char* name : {"query", "key", "value"}) {
      linear(layer + "attention.self." + name, shape_.width, shape_.width);
    }
    linear(layer + "attention.output.dense", shape_.width, shape_.width);
    norm(layer + "attention.output");
    linear(layer + "intermediate.dense", shape_.hidden, shape_.width);
    linear(layer + "output.dense", shape_.width, shape_.hidden);
    norm(layer + "output");
  }
}

std::vector<float> EncoderWeights::read(const std::string& name, up::Range rows,
                                        up::Range columns) const {
  return files_.tensors().read(prefix_ + name, rows, columns);
}

}  // namespace llm
