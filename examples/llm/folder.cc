#include "folder.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "config.h"
#include "safetensors.h"

namespace llm {
namespace {

namespace up = unisono::parallel;
using nlohmann::json;

// Newer files group the base with the other rotary parameters; older files have it at the top
// level.
float rope_base(const Config& config) {
  const char* own = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  json base = config.has("rope_theta") ? config.at("rope_theta") : json();
  if (config.has(own)) {
    const json& rope = config.at(own);
    if (!rope.is_object()) {
      config.fail(std::string("has '") + own + "' that is not a JSON object");
    }
    const json type = rope.value("rope_type", rope.value("type", json("default")));
    if (type != "default") {
      config.fail("has a rotary embedding of the type " + type.dump() +
                  ", which is not supported here");
    }
    base = rope.value("rope_theta", base);
  }
  return base.is_number() ? base.get<float>() : 10000.0F;
}

Shape shape_of(const Config& config) {
  if (config.text("model_type") != "llama") {
    config.fail("is of the model type '" + config.text("model_type") +
                "'; supported folders are llama, and bert for --embed");
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    config.must_be_off(key);
  }
  if (config.has("hidden_act") && config.at("hidden_act") != "silu") {
    config.fail("has the activation " + config.at("hidden_act").dump() + ", not \"silu\"");
  }
  Shape shape;
  shape.layers = config.count("num_hidden_layers");
  shape.width = config.count("hidden_size");
  shape.heads = config.count("num_attention_heads");
  shape.key_value_heads = config.count_or("num_key_value_heads", shape.heads);
  shape.dim = config.count_or("head_dim", shape.width / shape.heads);
  if (shape.dim == 0) {
    config.fail("has a smaller 'hidden_size' than 'num_attention_heads'");
  }
  shape.hidden = config.count("intermediate_size");
  shape.vocabulary = config.count("vocab_size");
  shape.epsilon = config.number_or("rms_norm_eps", 1e-6F);
  shape.rope_base = rope_base(config);
  shape.rope_halves = true;
  return shape;
}

// Returns the Hugging Face name for a GGUF name.
std::string name_in_folder(const std::string& name) {
  static constexpr std::array<std::pair<const char*, const char*>, 9> kOfLayers = {
      {{"attn_norm", "input_layernorm"},
       {"attn_q", "self_attn.q_proj"},
       {"attn_k", "self_attn.k_proj"},
       {"attn_v", "self_attn.v_proj"},
       {"attn_output", "self_attn.o_proj"},
       {"ffn_norm", "post_attention_layernorm"},
       {"ffn_gate", "mlp.gate_proj"},
       {"ffn_up", "mlp.up_proj"},
       {"ffn_down", "mlp.down_proj"}}};
  if (name == "token_embd.weight") {
    return "model.embed_tokens.weight";
  }
  if (name == "output.weight") {
    return "lm_head.weight";
  }
  if (name == "output_norm.weight") {
    return "model.norm.weight";
  }
  const std::size_t number = name.find('.') + 1;  // "blk.3.attn_q.weight"
  const std::size_t part = name.find('.', number) + 1;
  for (const auto& [ours, theirs] : kOfLayers) {
    if (name.compare(part, std::string::npos, std::string(ours) + ".weight") == 0) {
      return "model.layers." + name.substr(number, part - number) + theirs + ".weight";
    }
  }
  return name;
}

class FolderWeights : public Weights {
 public:
  explicit FolderWeights(const std::string& folder) : files_(folder) {
    const Config config(folder);
    shape_ = shape_of(config);
    is_tied_ = config.is_on("tie_word_embeddings");
    for_each_matrix(shape_, !is_tied_,
                    [&](const std::string& name, std::size_t rows, std::size_t columns) {
                      files_.tensors().must_be(name_in_folder(name), rows, columns);
                    });
  }
  Shape shape() const override { return shape_; }
  bool has(const std::string& name) const override {
    return name == "output.weight" ? !is_tied_ : files_.tensors().has(name_in_folder(name));
  }
  std::vector<float> read(const std::string& name, up::Range rows,
                          up::Range columns) const override {
    return files_.tensors().read(name_in_folder(name), rows, columns);
  }

 private:
  SafetensorsFolder files_;
  Shape shape_;
  bool is_tied_ = false;
};

void put_ends(const Config& config, std::vector<std::int32_t>& ends) {
  if (!config.has("eos_token_id")) {
    return;
  }
  const json& said = config.at("eos_token_id");
  for (const json& token : said.is_array() ? said : json::array({said})) {
    if (token.is_number_integer()) {
      ends.push_back(token.get<std::int32_t>());
    }
  }
}

}  // namespace

std::unique_ptr<Weights> folder_weights(const std::string& folder) {
  return std::make_unique<FolderWeights>(folder);
}

std::optional<Vocabulary> folder_vocabulary(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  const json tokenizer = read_json(path);
  try {
    Vocabulary vocabulary = vocabulary_of(tokenizer);
    put_ends(Config(folder), vocabulary.ends);
    return vocabulary;
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace llm
