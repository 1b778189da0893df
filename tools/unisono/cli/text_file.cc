#include "cli/text_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "cli/failure.h"

namespace unisono::cli {

std::string read_text_file(const std::string& path) {
  constexpr std::size_t kLargest = 1'000'000'000;
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw UsageError(fmt::format("{} is a folder", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UsageError(fmt::format("cannot read {}", path), "no such file, or no permission");
  }
  std::string text;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargest) {
      throw UsageError(fmt::format("{} is larger than 1 GB", path));
    }
  }
  return text;
}

}  // namespace unisono::cli
