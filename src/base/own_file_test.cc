#include "base/own_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace unisono {
namespace {

class OwnFile : public ::testing::Test {
 protected:
  OwnFile() {
    std::string name = (std::filesystem::temp_directory_path() / "own-file-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::ofstream(victim()) << "precious";
  }
  ~OwnFile() override { std::filesystem::remove_all(folder_); }

  std::string victim() const { return folder_ + "/victim"; }
  std::string path() const { return folder_ + "/file"; }
  std::string victims_text() const {
    std::ifstream file(victim());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string refusal() const {
    std::string why;
    const UniqueFd file = open_own_file(path(), O_RDWR | O_CREAT | O_TRUNC, why);
    EXPECT_FALSE(file);
    EXPECT_EQ(victims_text(), "precious");
    return why;
  }

 private:
  std::string folder_;
};

TEST_F(OwnFile, MakesAFileThatNobodyElseReads) {
  std::string why;
  const UniqueFd file = open_own_file(path(), O_RDWR | O_CREAT, why);
  ASSERT_TRUE(file) << why;
  struct stat status = {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(OwnFile, OpensItsOwnFileAgain) {
  std::string why;
  ASSERT_TRUE(open_own_file(path(), O_RDWR | O_CREAT, why));
  EXPECT_TRUE(open_own_file(path(), O_RDWR | O_CREAT | O_TRUNC, why)) << why;
}

TEST_F(OwnFile, FollowsNoLink) {
  std::filesystem::create_symlink(victim(), path());
  EXPECT_EQ(refusal(), "it is a symbolic link");
}

TEST_F(OwnFile, TakesNoHardLink) {
  std::filesystem::create_hard_link(victim(), path());
  EXPECT_EQ(refusal(), "has a second name (a hard link)");
}

TEST_F(OwnFile, TakesNoPipe) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "is not a regular file");
}

TEST_F(OwnFile, TakesNoFileOfAnotherUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "run as root: only root can make a file of another user";
  }
  std::ofstream(path()) << "bait";
  ASSERT_EQ(::chown(path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(refusal(), "belongs to user 65534");
}

}  // namespace
}  // namespace unisono
