#include "vectors.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "encoder.h"
#include "folder.h"

namespace llm {
namespace {

namespace up = unisono::parallel;
using Vectors = std::vector<std::vector<float>>;

constexpr double kSameDistance = 1e-5;

void save(const std::string& path, const Vectors& vectors) {
  std::ofstream out(path);
  out << std::setprecision(9);
  for (const auto& vector : vectors) {
    for (const float value : vector) {
      out << value << ' ';
    }
    out << '\n';
  }
  if (!out.flush()) {
    throw std::runtime_error(path + " cannot be written");
  }
}

Vectors load(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    throw std::runtime_error(path + " cannot be read; create it with --save");
  }
  Vectors vectors;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<float>& vector = vectors.emplace_back();
    for (float value = 0; words >> value;) {
      vector.push_back(value);
    }
    if (!words.eof()) {
      throw std::runtime_error(path + " has a line that is not a vector");
    }
  }
  return vectors;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  const auto dot = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::inner_product(
        x.begin(), x.end(), y.begin(), 0.0, std::plus(),
        [](float s, float t) { return static_cast<double>(s) * static_cast<double>(t); });
  };
  return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

bool compare(const Vectors& vectors, const Options& options, const std::string& layout,
             bool is_speaker) {
  const Vectors saved = load(options.compare);
  if (saved.size() != vectors.size()) {
    throw std::runtime_error(options.compare + " has another number of texts");
  }
  double most = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (saved[i].size() != vectors[i].size()) {
      throw std::runtime_error(options.compare + " has vectors of another length");
    }
    most = std::max(most, 1 - cosine(vectors[i], saved[i]));
  }
  const bool is_right = most <= kSameDistance;  // also false if a number is NaN
  if (is_speaker) {
    std::printf("%-28s %zu texts, cosine distance %.1e at most: %s\n", layout.c_str(), saved.size(),
                most, is_right ? "same vectors" : "WRONG");
  }
  return is_right;
}

void say(const Vectors& vectors) {
  if (vectors.size() > 1) {
    for (std::size_t i = 1; i < vectors.size(); ++i) {
      std::printf("%.4f\n", cosine(vectors.front(), vectors[i]));
    }
    return;
  }
  for (const float value : vectors.front()) {
    std::printf("%.7g ", static_cast<double>(value));
  }
  std::printf("\n");
}

up::Mesh mesh_of(unisono::Communicator& world, const Options& options, const std::string& layout) {
  if (!options.prompt.empty()) {
    throw std::invalid_argument("llm: " + options.model +
                                " is an encoder, which cannot answer; use --embed");
  }
  if (options.same_bits) {
    throw std::invalid_argument("llm: an encoder has no --same-bits");
  }
  up::Mesh mesh = up::Mesh::create(world, mesh_text(layout, world.size()));
  if (mesh.size("tp") != world.size()) {
    throw std::invalid_argument("llm: an encoder supports only tp, not '" + layout + "'");
  }
  return mesh;
}

}  // namespace

Tokenizer encoder_tokenizer(const std::string& folder) {
  auto vocabulary = folder_vocabulary(folder);
  if (!vocabulary) {
    throw std::runtime_error(folder + " has no tokenizer.json, which an encoder needs");
  }
  must_fit(*vocabulary, EncoderWeights(folder).shape().vocabulary, folder);
  return Tokenizer(std::move(*vocabulary));
}

bool run_encoder(unisono::Communicator& world, const Options& options, const std::string& layout) {
  up::Mesh mesh = mesh_of(world, options, layout);
  const Tokenizer tokenizer = encoder_tokenizer(options.model);
  const EncoderWeights weights(options.model);
  Encoder encoder(mesh.axis("tp"), weights, options.precision);
  std::vector<std::vector<std::int32_t>> texts;
  std::size_t tokens = 0;
  const auto add = [&](const std::string& text) {
    texts.push_back(tokenizer.encode(text));
    tokens += texts.back().size();
  };
  if (options.embed.empty()) {
    std::ranges::for_each(prompts(), add);
  } else {
    std::ranges::for_each(options.embed, add);
  }
  const auto begin = std::chrono::steady_clock::now();
  const Vectors vectors = encoder.embed(texts);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const bool is_speaker = world.rank() == 0;
  if (!options.compare.empty()) {
    return compare(vectors, options, layout.empty() ? mesh.shape().text() : layout, is_speaker);
  }
  if (!is_speaker) {
    return true;
  }
  if (!options.save.empty()) {
    save(options.save, vectors);
    return true;
  }
  say(vectors);
  std::fprintf(stderr, "# %zu texts, %zu tokens: %.1f ms, %.1f %% of it in communication\n",
               texts.size(), tokens, 1e3 * took.count(),
               100 * encoder.communication_s() / took.count());
  std::fprintf(stderr, "# weights here: %.1f MiB\n",
               static_cast<double>(encoder.weight_bytes()) / 0x1p20);
  return true;
}

}  // namespace llm
