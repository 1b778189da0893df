#include "transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "unisono/error.hpp"

namespace unisono::shm {
namespace {

const char* remedy(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
    case ENOSYS:
      return "allow memfd_create in the container's seccomp profile (it needs Linux 3.17)";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case EFBIG:
      return "raise the limit on file sizes, which also applies to shared memory (ulimit -f)";
    default:
      return "raise the memory limit (ulimit -v, or the container's limit)";
  }
}

[[noreturn]] void fail(const std::string& what, std::size_t bytes) {
  const int error = errno;
  throw Error(ErrorCode::resource, what + " of " + std::to_string(bytes) + " bytes failed: " +
                                       std::strerror(error) + "\n" + remedy(error));
}

// The limit on file sizes also applies to this memory; a process that exceeds it gets SIGXFSZ.
bool may_have(std::size_t bytes) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
  errno = EFBIG;
  return !known || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

}  // namespace

UniqueFd create_memory(const char* name, std::size_t bytes) {
  UniqueFd memory(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.get() < 0 || !may_have(bytes) ||
      ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    fail("shared memory", bytes);
  }
  // The seals keep the file from being truncated, which would raise SIGBUS in a reader.
  fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return memory;
}

Mapping::Mapping(int fd, std::size_t bytes) : bytes_(bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) {
    fail("mapping shared memory", bytes);
  }
  data_ = static_cast<std::byte*>(data);
}

Mapping::~Mapping() {
  munmap(data_, bytes_);
}

std::size_t read_process(int pid, std::uint64_t address, void* target, std::size_t bytes) noexcept {
  const iovec here{.iov_base = target, .iov_len = bytes};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  const ssize_t copied = process_vm_readv(pid, &here, 1, &there, 1, 0);
  return copied < 0 ? 0 : static_cast<std::size_t>(copied);
}

}  // namespace unisono::shm
