#include "weights.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace llm {
namespace {

namespace up = unisono::parallel;

class FileWeights : public Weights {
 public:
  explicit FileWeights(const Gguf& file) : file_(file) {
    const auto& kind = file.meta<std::string>("general.architecture");
    if (kind != "llama" && kind != "gemma3") {
      throw std::runtime_error("no model of the architecture '" + kind +
                               "'; supported are llama and gemma3");
    }
    const auto key = [&](const char* name) { return kind + "." + name; };
    const auto count = [&](const std::string& name) {
      const auto value = file.meta<std::int64_t>(name);
      constexpr std::int64_t kMost = 1 << 30;
      if (value < 1 || value > kMost) {
        throw std::runtime_error("'" + name + "' is " + std::to_string(value));
      }
      return static_cast<std::size_t>(value);
    };
    const auto number = [&](const std::string& name, float otherwise) {
      return file.has_meta(name) ? static_cast<float>(file.meta<double>(name)) : otherwise;
    };
    shape_.layers = count(key("block_count"));
    shape_.width = count(key("embedding_length"));
    shape_.heads = count(key("attention.head_count"));
    shape_.key_value_heads = file.has_meta(key("attention.head_count_kv"))
                                 ? count(key("attention.head_count_kv"))
                                 : shape_.heads;
    shape_.dim = file.has_meta(key("attention.key_length")) ? count(key("attention.key_length"))
                                                            : shape_.width / shape_.heads;
    if (shape_.dim == 0) {
      throw std::runtime_error("'" + key("embedding_length") +
                               "' is less than the number of heads");
    }
    shape_.hidden = count(key("feed_forward_length"));
    shape_.vocabulary = file.tensors().at("token_embd.weight").rows;
    shape_.epsilon = number(key("attention.layer_norm_rms_epsilon"), shape_.epsilon);
    shape_.is_gemma = kind == "gemma3";
    shape_.rope_halves = shape_.is_gemma;
    shape_.rope_base = number(key("rope.freq_base"), shape_.is_gemma ? 1e6F : 1e4F);
    if (shape_.is_gemma) {
      shape_.window = count(key("attention.sliding_window"));
      shape_.pattern = kGemmaPattern;
    }
    for_each_matrix(shape_, file.tensors().has("output.weight"),
                    [&](const std::string& name, std::size_t rows, std::size_t columns) {
                      file.tensors().must_be(name, rows, columns);
                    });
  }
  Shape shape() const override { return shape_; }
  bool has(const std::string& name) const override { return file_.tensors().has(name); }
  std::vector<float> read(const std::string& name, up::Range rows,
                          up::Range columns) const override {
    return file_.tensors().read(name, rows, columns);
  }

 private:
  static constexpr std::size_t kGemmaPattern = 6;
  const Gguf& file_;
  Shape shape_;
};

class RandomWeights : public Weights {
 public:
  explicit RandomWeights(std::uint64_t seed) : seed_(seed) {}
  Shape shape() const override { return {}; }
  bool has(const std::string& name) const override { return name != "output.weight"; }
  std::vector<float> read(const std::string& name, up::Range rows,
                          up::Range columns) const override {
    std::vector<float> part(rows.count * columns.count, 1.0F);
    if (name.find("norm") != std::string::npos) {
      return part;
    }
    // Each row has its own seed, so that all readers get equal parts.
    std::uint64_t seed = seed_;
    for (const char c : name) {
      seed = seed * 1099511628211U + static_cast<unsigned char>(c);
    }
    const float scale = name == "token_embd.weight" ? 1.0F : 0.2F;
    for (std::size_t r = 0; r < rows.count; ++r) {
      std::mt19937_64 random(seed + (rows.first + r) * 0x9E3779B97F4A7C15U);
      for (std::size_t c = 0; c < columns.first + columns.count; ++c) {
        const auto value = static_cast<float>(random() >> 40) * 0x1p-23F - 1;
        if (c >= columns.first) {
          part[r * columns.count + c - columns.first] = scale * value;
        }
      }
    }
    return part;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

void for_each_matrix(const Shape& shape, bool has_output,
                     const std::function<void(const std::string&, std::size_t, std::size_t)>& use) {
  const std::size_t queries = shape.heads * shape.dim;
  const std::size_t keys = shape.key_value_heads * shape.dim;
  use("token_embd.weight", shape.vocabulary, shape.width);
  use("output_norm.weight", 1, shape.width);
  if (has_output) {
    use("output.weight", shape.vocabulary, shape.width);
  }
  for (std::size_t i = 0; i < shape.layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    use(prefix + "attn_norm.weight", 1, shape.width);
    use(prefix + "ffn_norm.weight", 1, shape.width);
    use(prefix + "attn_q.weight", queries, shape.width);
    use(prefix + "attn_k.weight", keys, shape.width);
    use(prefix + "attn_v.weight", keys, shape.width);
    use(prefix + "attn_output.weight", shape.width, queries);
    use(prefix + "ffn_gate.weight", shape.hidden, shape.width);
    use(prefix + "ffn_up.weight", shape.hidden, shape.width);
    use(prefix + "ffn_down.weight", shape.width, shape.hidden);
    if (shape.is_gemma) {
      use(prefix + "attn_q_norm.weight", 1, shape.dim);
      use(prefix + "attn_k_norm.weight", 1, shape.dim);
      use(prefix + "post_attention_norm.weight", 1, shape.width);
      use(prefix + "post_ffw_norm.weight", 1, shape.width);
    }
  }
}

std::unique_ptr<Weights> file_weights(const Gguf& file) {
  return std::make_unique<FileWeights>(file);
}

std::unique_ptr<Weights> random_weights(std::uint64_t seed) {
  return std::make_unique<RandomWeights>(seed);
}

}  // namespace llm
