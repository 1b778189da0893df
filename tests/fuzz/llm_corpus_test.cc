// Runs files of models, whole, cut anywhere and with single bytes changed, through the readers of
// examples/llm. The folder with a folder for each kind is an argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "llm_config_property.h"
#include "llm_gguf_property.h"
#include "llm_safetensors_property.h"
#include "llm_tokenizer_property.h"

namespace unisono {
namespace {

template <typename Property>
void expect_to_hold(const char* kind, const Property& property) {
  const auto seeds = fuzz::folder;
  fuzz::folder = seeds / kind;
  const auto files = fuzz::corpus();
  EXPECT_GE(files.size(), 2U) << kind;
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(property(file.text), "");
    fuzz::expect_to_hold_damaged(file, 300, property);
  }
  fuzz::folder = seeds;
}

TEST(LlmCorpus, Gguf) {
  expect_to_hold("llm_gguf", fuzz::llm_gguf_property);
}

TEST(LlmCorpus, Safetensors) {
  expect_to_hold("llm_safetensors", fuzz::llm_safetensors_property);
}

TEST(LlmCorpus, Tokenizer) {
  expect_to_hold("llm_tokenizer", fuzz::llm_tokenizer_property);
}

TEST(LlmCorpus, Config) {
  expect_to_hold("llm_config", fuzz::llm_config_property);
}

TEST(LlmFiles, ErrorsNameTheFieldAndTheByte) {
  const auto refusal = [](const std::string& bytes) {
    const fuzz::FileOfBytes file(bytes);
    try {
      const llm::Gguf model(file.path());
      return std::string("none");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
  };
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
      text += static_cast<char>(value >> (8 * i) & 0xFF);
    }
    return text;
  };
  const std::string begin =
      "GGUF" + number(3, 4) + number(0, 8) + number(1, 8) + number(3, 8) + "key";
  EXPECT_NE(refusal(begin + number(99, 4)).find("at byte 39, in 'key'"), std::string::npos)
      << refusal(begin + number(99, 4));
  // A list of 2^40 texts in a file of some bytes.
  const std::string huge = begin + number(9, 4) + number(8, 4) + number(std::uint64_t{1} << 40, 8);
  EXPECT_NE(refusal(huge).find("in 'key'"), std::string::npos) << refusal(huge);
  const std::string byte = begin + number(9, 4) + number(0, 4) + number(5, 8) + "1234";
  EXPECT_NE(refusal(byte).find("ends in the middle of its header, at byte 51, in 'key'"),
            std::string::npos)
      << refusal(byte);
}

}  // namespace
}  // namespace unisono
