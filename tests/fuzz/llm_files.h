// Any bytes as a file that examples/llm reads, and the property of its refusal.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

namespace unisono::fuzz {

// A file in memory, with a path.
class FileOfBytes {
 public:
  explicit FileOfBytes(std::string_view bytes) : fd_(::memfd_create("bytes", MFD_CLOEXEC)) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written <= 0) {
        throw std::logic_error("no room for a file");
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  FileOfBytes(const FileOfBytes&) = delete;
  FileOfBytes& operator=(const FileOfBytes&) = delete;
  ~FileOfBytes() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Holds if `read` throws only std::runtime_error itself, with a message: other exceptions report
// what the library found, such as an index out of range, and not the mistake in the file.
template <typename Read>
std::string refusal_property(const Read& read) {
  try {
    return read();
  } catch (const std::runtime_error& error) {
    return typeid(error) == typeid(std::runtime_error) && std::string_view(error.what()).size() > 8
               ? ""
               : std::string("refused with ") + typeid(error).name() + ": " + error.what();
  } catch (const std::exception& error) {
    return std::string("ended by ") + typeid(error).name() + ": " + error.what();
  }
}

}  // namespace unisono::fuzz
