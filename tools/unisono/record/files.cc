#include "record/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/unique_fd.h"
#include "cli/failure.h"
#include "cli/json_document.h"
#include "cli/text_file.h"

namespace unisono::cli {
namespace {

// Larger than any recording of a rank.
constexpr off_t kLargestFile = off_t{2} << 30;

}  // namespace

std::vector<std::byte> read_bytes(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::clamp<off_t>(size, 0, kLargestFile)));
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more =
        ::pread(fd, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (more <= 0) {
      break;
    }
    got += static_cast<std::size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

std::vector<std::vector<std::byte>> read_recordings(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".events") {
        paths.push_back(entry.path().string());
      }
    }
    std::sort(paths.begin(), paths.end());
  } else {
    paths.push_back(path);
  }
  if (paths.empty()) {
    throw UsageError(fmt::format("{} has no recordings", path), "files that end in .events",
                     "UNISONO_RECORD=DIR for each rank, then unisono trace merge DIR");
  }
  std::vector<std::vector<std::byte>> files;
  for (const std::string& file : paths) {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
      throw UsageError(fmt::format("cannot read {}: {}", file, ::strerror(errno)));
    }
    files.push_back(read_bytes(fd.get()));
  }
  return files;
}

void refuse_cut(const std::string& path) {
  throw Error(
      ErrorCode::corrupt,
      fmt::format("{} is not a whole JSON document: it is damaged, or cut off\nmake or copy it "
                  "again",
                  path));
}

nlohmann::ordered_json read_trace(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw UsageError(fmt::format("{} is a folder", path), "a recording is a file",
                     "unisono trace merge makes one of what ranks left in a folder");
  }
  const std::string text = read_text_file(path, kMostOfRecording);
  auto document = parse_json_document<nlohmann::ordered_json>(path, text);
  if (document.is_discarded()) {
    refuse_other_files(path, text, "a recording (unisono.trace/1)");
    refuse_cut(path);
  }
  refuse_other_version(path, document);
  refuse_traces(path, document);
  if (format_of(document) != "unisono.trace/1") {
    const std::string format = format_of(document);
    throw UsageError(fmt::format("{} is {}", path, format.empty() ? "no recording" : format),
                     "a recording (unisono.trace/1) is expected",
                     "unisono run --record FILE makes one");
  }
  return document;
}

std::string dump(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace unisono::cli
