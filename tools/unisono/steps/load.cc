// Loads the step that a command names.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "cli/failure.h"
#include "cli/foreign_file.h"
#include "cli/text_file.h"
#include "models/models.h"
#include "step/decoder.h"
#include "step/json.h"
#include "step/training.h"
#include "steps/steps.h"

namespace unisono::cli {
namespace {

constexpr std::int64_t kMostTokens = 100'000'000;
constexpr std::int64_t kMostExperts = 100'000;
constexpr std::size_t kMostSequences = 1'000'000;

// Returns true if the file names the step format; a config.json does not.
bool is_step(const std::string& which) {
  return std::filesystem::is_regular_file(which) && foreign_binary_file(which).empty() &&
         read_text_file(which).find(step::kStepFormat) != std::string::npos;
}

void refuse_options_of_models(const std::string& path, const Arguments& arguments) {
  for (const char* option :
       {"layout", "prompt", "behind", "train", "with", "precision", "upcycled"}) {
    if (arguments.has(option)) {
      throw UsageError(fmt::format("--{} needs a model: {} defines it itself", option, path));
    }
  }
}

double element_bytes(const std::string& precision) {
  return precision == "f32" ? 4 : precision == "bf16" ? 2 : 1;
}

// Accepts only digits, without a sign or spaces.
bool read_count(std::string_view text, std::size_t most, std::size_t& count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count >= 1 && count <= most;
}

}  // namespace

step::TrainingTask training_task(const Arguments& arguments) {
  const std::string text = arguments.text("train");
  step::TrainingTask task = step::parse_training(arguments.text("with"));
  const std::size_t by = text.find('x');
  if (by == std::string::npos ||
      !read_count(std::string_view(text).substr(0, by), kMostSequences, task.sequences) ||
      !read_count(std::string_view(text).substr(by + 1), kMostTokens, task.length)) {
    throw UsageError(fmt::format("--train cannot be '{}'", text),
                     "give the sequences and the tokens of each, such as --train 8x2048",
                     "unisono help step");
  }
  task.element_bytes = element_bytes(arguments.text("precision"));
  return task;
}

step::Step load_step(const std::string& path) {
  const std::string text = read_text_file(path);
  Parsed<step::Step> parsed = step::parse_step_json(text);
  if (!parsed) {
    throw UsageError(fmt::format("{}{}: {}", path, place_in(text, parsed.position), parsed.message),
                     "docs/formats/step.md describes the format");
  }
  return std::move(*parsed.value);
}

step::Step step_of(const std::string& which, const Arguments& arguments, const Console& console) {
  if (is_step(which)) {
    refuse_options_of_models(which, arguments);
    return load_step(which);
  }
  const int kinds = static_cast<int>(arguments.has("prompt")) +
                    static_cast<int>(arguments.has("behind")) +
                    static_cast<int>(arguments.has("train"));
  if (kinds > 1 || (arguments.has("with") && !arguments.has("train")) ||
      (arguments.has("train") && arguments.has("upcycled"))) {
    throw UsageError(kinds > 1 ? "--prompt, --behind and --train exclude each other"
                               : "--with needs --train, and --upcycled needs --prompt or --behind",
                     "choose a prompt, one token, or training", "unisono help step");
  }
  planner::ModelConfig model = read_model(which, "unisono help step");
  planner::ModelShape& shape = model.shape;
  if (!shape.is_uniform()) {
    throw UsageError(
        fmt::format("{} has layers or heads of several kinds, which no step describes", which),
        "unisono plan-model plans it", "unisono help step");
  }
  if (shape.stored) {
    model.account.left_out.push_back("quantization_config (a step's weights are in --precision)");
  }
  if (shape.window_layers() > 0 && arguments.text("layout").find("cp=") != std::string::npos) {
    model.account.left_out.push_back("attention windows (cp cuts keys by position: all are kept)");
  }
  for (const std::string& line : model.account.lines()) {
    console.note(line);
  }
  step::DecoderTask task{.element_bytes = element_bytes(arguments.text("precision"))};
  if (arguments.has("prompt")) {
    task.tokens = static_cast<std::size_t>(arguments.number("prompt", 2, kMostTokens));
  } else {
    task.context = static_cast<std::size_t>(arguments.number("behind", 0, kMostTokens));
  }
  if (arguments.has("upcycled")) {
    if (shape.has_experts()) {
      throw UsageError(fmt::format("{} has experts already", which),
                       "--upcycled needs a dense model", "unisono help step");
    }
    shape.experts = static_cast<int>(arguments.number("upcycled", 2, kMostExperts));
    shape.experts_per_token = 2;
    shape.expert_ffn = shape.ffn;
    task.is_upcycled = true;
  }
  try {
    if (arguments.has("train")) {
      return make_training_step(shape, arguments.text("layout"), training_task(arguments));
    }
    return make_decoder_step(shape, arguments.text("layout"), task);
  } catch (const Error& error) {
    throw UsageError(std::string(error.summary()), std::string(error.hint()), "unisono help step");
  }
}

}  // namespace unisono::cli
