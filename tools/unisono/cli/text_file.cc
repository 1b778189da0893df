// Reads with zlib, which passes uncompressed files through unchanged.
#include "cli/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes_text.h"
#include "base/unique_fd.h"
#include "cli/failure.h"

namespace unisono::cli {
namespace {

struct CloseGz {
  void operator()(gzFile file) const { ::gzclose_r(file); }
};

using GzFile = std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGz>;

// gzip makes the text files of tools 5 to 50 times smaller. Files that unpack to at most this size
// are always accepted.
constexpr std::size_t kAnyUnpacked = std::size_t{64} << 20U;
constexpr std::size_t kMostTimes = 200;

struct OpenText {
  GzFile file;
  std::size_t bytes = 0;  // on disk; 0: not a regular file
};

OpenText open_text(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw UsageError(fmt::format("{} is a folder", path));
  }
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    throw UsageError(fmt::format("cannot read {}", path), "no such file, or no permission");
  }
  const bool is_regular = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  GzFile file(::gzdopen(fd.get(), "rb"));
  if (file == nullptr) {
    throw Error(ErrorCode::resource, fmt::format("no memory to read {}", path));
  }
  static_cast<void>(fd.release());  // the file closes it
  return {.file = std::move(file),
          .bytes = is_regular ? static_cast<std::size_t>(status.st_size) : 0};
}

// Without a byte order mark: every second byte of the first two letters is 0.
bool is_utf16(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return true;
  }
  const auto is_letter = [text](std::size_t place) {
    const auto sign = static_cast<unsigned char>(text[place]);
    return sign == '\t' || sign == '\n' || sign == '\r' || (sign >= ' ' && sign < 0x7f);
  };
  return text.size() >= 4 && ((is_letter(0) && is_letter(2) && text[1] == 0 && text[3] == 0) ||
                              (is_letter(1) && is_letter(3) && text[0] == 0 && text[2] == 0));
}

std::string size_text(std::size_t bytes) {
  return format_bytes(static_cast<std::uint64_t>(bytes));
}

void check_size(const std::string& path, std::size_t bytes, std::size_t most,
                const OpenText& opened) {
  if (bytes > most) {
    throw UsageError(fmt::format("{} is larger than {}", path, size_text(most)),
                     "larger files of this kind are not read",
                     "give a shorter file, or a part of this one");
  }
  if (bytes <= kAnyUnpacked || ::gzdirect(opened.file.get()) != 0) {
    return;
  }
  const z_off_t taken = ::gzoffset(opened.file.get());
  const std::size_t packed =
      opened.bytes > 0 ? opened.bytes : static_cast<std::size_t>(std::max<z_off_t>(taken, 1));
  if (bytes / kMostTimes > packed) {
    throw UsageError(fmt::format("{} has {}, but unpacks to more than {} times as much", path,
                                 size_text(packed), kMostTimes),
                     "no recording compresses that well: the file may be made to fill the memory",
                     fmt::format("gunzip {} first, if you trust it", path));
  }
}

}  // namespace

std::string read_text_file(const std::string& path, std::size_t most) {
  const OpenText opened = open_text(path);
  const gzFile file = opened.file.get();
  std::string text;
  std::vector<char> block(1 << 16);
  int got = ::gzread(file, block.data(), static_cast<unsigned>(block.size()));
  if (got > 0 && ::gzdirect(file) != 0) {
    text.reserve(std::min(opened.bytes, most));
  }
  while (got > 0) {
    text.append(block.data(), static_cast<std::size_t>(got));
    check_size(path, text.size(), most, opened);
    got = ::gzread(file, block.data(), static_cast<unsigned>(block.size()));
  }
  int status = Z_OK;
  ::gzerror(file, &status);
  if (status != Z_OK && ::gzdirect(file) == 0) {
    throw Error(
        ErrorCode::corrupt,
        fmt::format("{} is a gzip file that is damaged or truncated\ncreate or copy it again",
                    path));
  }
  if (status != Z_OK) {
    throw UsageError(fmt::format("cannot read {}", path), "the file system reports an error");
  }
  if (is_utf16(text)) {
    throw UsageError(fmt::format("{} is UTF-16, as PowerShell writes it", path),
                     "only UTF-8 is read", fmt::format("iconv -f UTF-16 -t UTF-8 {}", path));
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as editors of Windows write it
  text.erase(0, text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  return text;
}

}  // namespace unisono::cli
