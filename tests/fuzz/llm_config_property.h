// The property of any bytes given to examples/llm as a config.json.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "encoder_weights.h"
#include "folder.h"
#include "llm_files.h"

namespace unisono::fuzz {

// A model folder with one tensor: the whole model of the smallest possible encoder or Llama.
class FolderOfConfig {
 public:
  FolderOfConfig() : path_("/tmp/unisono-fuzz-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
    const std::string header = R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})";
    std::ofstream file(path_ + "/model.safetensors", std::ios::binary);
    file << static_cast<char>(header.size()) << std::string(7, '\0') << header
         << std::string(4, '\0');
  }
  FolderOfConfig(const FolderOfConfig&) = delete;
  FolderOfConfig& operator=(const FolderOfConfig&) = delete;
  ~FolderOfConfig() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& with(std::string_view config) const {
    std::ofstream(path_ + "/config.json", std::ios::binary) << config;
    return path_;
  }

 private:
  std::string path_;
};

// Returns an empty text if the property holds, otherwise the failure.
inline std::string llm_config_property(std::string_view bytes) {
  static const FolderOfConfig made;
  const std::string& path = made.with(bytes);
  const std::string problem = refusal_property([&path] {
    if (llm::is_encoder(path)) {
      static_cast<void>(llm::EncoderWeights(path));
    }
    return std::string();
  });
  return problem.empty() ? refusal_property([&path] {
    static_cast<void>(llm::folder_weights(path));
    return std::string();
  })
                         : problem;
}

}  // namespace unisono::fuzz
