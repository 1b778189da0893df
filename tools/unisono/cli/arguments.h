// The parsed command line of one command. Getters throw UsageError for a value that cannot be read.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option_table.h"

namespace unisono::cli {

class Arguments {
 public:
  // `words` follow the command's name. Errors: UsageError with the nearest option.
  static Arguments parse(const Command& command, std::span<const std::string> words);

  const Command& command() const { return *command_; }
  const std::vector<std::string>& operands() const { return operands_; }
  // runs_program: the other program's command line.
  const std::vector<std::string>& program() const { return program_; }

  bool has(std::string_view option) const;          // given on the command line
  std::string text(std::string_view option) const;  // given, or the fallback
  const std::vector<std::string>& texts(std::string_view option) const;
  std::int64_t number(std::string_view option, std::int64_t least, std::int64_t most) const;
  double real(std::string_view option) const;
  std::uint64_t bytes(std::string_view option) const;
  // Reads one of several values.
  std::uint64_t bytes_in(std::string_view option, std::string_view value) const;
  double seconds(std::string_view option) const;  // "30s", "500ms", "2m", "1h", "1.5"

 private:
  const Command* command_ = nullptr;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> operands_;
  std::vector<std::string> program_;
};

// "0,3-5" -> {0, 3, 4, 5}; throws UsageError naming `option`.
std::vector<int> parse_ranks(std::string_view text, int ranks, std::string_view option);

}  // namespace unisono::cli
