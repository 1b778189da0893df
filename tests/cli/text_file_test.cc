// Files that are compressed, truncated, or made to exhaust memory.
#include "cli/text_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "cli/failure.h"

namespace unisono::cli {
namespace {

std::string path_of(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / ("text_file_test." + name)).string();
}

std::string written(const std::string& name, const std::string& bytes) {
  const std::string path = path_of(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// `times` blocks of 1 MiB of one character.
std::string packed(const std::string& name, int times) {
  const std::string path = path_of(name);
  const std::string block(1 << 20, '[');
  const gzFile file = gzopen(path.c_str(), "wb9");
  for (int i = 0; i < times; ++i) {
    gzwrite(file, block.data(), static_cast<unsigned>(block.size()));
  }
  gzclose(file);
  return path;
}

std::string refusal(const std::string& path, std::size_t most = kMostOfDocument) {
  try {
    static_cast<void>(read_text_file(path, most));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(TextFile, UnpacksWhatIsPacked) {
  EXPECT_EQ(read_text_file(packed("small.gz", 3)).size(), std::size_t{3} << 20U);
}

// 65 MiB in 65 KiB: a file beyond 64 MiB must not expand more than 200 times.
TEST(TextFile, RefusesWhatIsMadeToFillTheMemory) {
  const std::string path = packed("bomb.gz", 80);
  EXPECT_LT(std::filesystem::file_size(path), std::size_t{1} << 20U);
  EXPECT_NE(refusal(path, kMostOfRecording).find("more than 200 times"), std::string::npos)
      << refusal(path, kMostOfRecording);
}

TEST(TextFile, RefusesWhatIsLargerThanItsKind) {
  EXPECT_NE(refusal(packed("large.gz", 3), 1 << 20).find("is larger than"), std::string::npos);
  EXPECT_NE(refusal(written("large", std::string(2 << 20, 'a')), 1 << 20).find("is larger than"),
            std::string::npos);
}

// Text as written by Windows editors and PowerShell.
TEST(TextFile, ReadsWithoutAByteOrderMark) {
  EXPECT_EQ(read_text_file(written("marked", "\xef\xbb\xbf{}")), "{}");
  EXPECT_EQ(read_text_file(written("mark", "\xef\xbb\xbf")), "");
  for (const std::string& text :
       {std::string("\xff\xfe{\0}\0", 6), std::string("{\0}\0", 4), std::string("\0#\0 \0n", 6)}) {
    EXPECT_NE(refusal(written("wide", text)).find("UTF-16"), std::string::npos) << text.size();
  }
  EXPECT_EQ(refusal(written("binary", std::string("\x10\0\0\0\0\0\0\0{", 9))), "");
}

TEST(TextFile, RefusesWhatIsCutOff) {
  const std::string path = packed("cut.gz", 3);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_NE(refusal(path).find("damaged or truncated"), std::string::npos) << refusal(path);
}

TEST(TextFile, NamesUtf16) {
  EXPECT_NE(refusal(written("utf16", std::string("\xff\xfe#\0 \0n\0", 8))).find("UTF-16"),
            std::string::npos);
}

}  // namespace
}  // namespace unisono::cli
