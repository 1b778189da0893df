// Preloaded into a rank, it lets one call of one function fail:
//
//   FAIL_CALL=mmap FAIL_AT=3 FAIL_RANK=1 FAIL_MARK=FILE LD_PRELOAD=.../libfailing.so PROGRAM
//
// The third mmap() of rank 1 after arm_failures() fails, and FILE is made; without FILE there was
// no such call. The system's allocator is not asked by its own library through these names, so what
// is counted are the calls of the program and of unisono.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> calls_left{0};
std::atomic<bool> armed{false};
const char* which = "";
const char* mark = "";

bool fails(const char* name) {
  if (!armed || std::strcmp(name, which) != 0 || --calls_left != 0) {
    return false;
  }
  ::close(::open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  return true;
}

template <typename Function>
Function* real(Function*& known, const char* name) {
  if (known == nullptr) {
    known = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  }
  return known;
}

}  // namespace

__attribute__((visibility("default"))) void* operator new(std::size_t bytes) {
  void* const memory = fails("new") ? nullptr : std::malloc(bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

// The names, types and attributes are the system's.
extern "C" {
__attribute__((visibility("default"))) void arm_failures() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
  };
  which = variable("FAIL_CALL");
  mark = variable("FAIL_MARK");
  calls_left = std::atol(variable("FAIL_AT"));
  armed = std::strcmp(variable("FAIL_RANK"), variable("RANK")) == 0 && *mark != 0;
}

__attribute__((visibility("default"))) void* mmap(void* address, std::size_t bytes, int protection,
                                                  int flags, int fd, off_t offset) noexcept {
  static decltype(&::mmap) known = nullptr;
  if (fails("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real(known, "mmap")(address, bytes, protection, flags, fd, offset);
}

__attribute__((visibility("default"))) int memfd_create(const char* name, unsigned flags) noexcept {
  static decltype(&::memfd_create) known = nullptr;
  if (fails("memfd_create")) {
    errno = ENOMEM;
    return -1;
  }
  return real(known, "memfd_create")(name, flags);
}

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol) noexcept {
  static decltype(&::socket) known = nullptr;
  if (fails("socket")) {
    errno = EMFILE;
    return -1;
  }
  return real(known, "socket")(domain, type, protocol);
}

__attribute__((visibility("default"))) int accept4(int fd, sockaddr* address, socklen_t* length,
                                                   int flags) {
  static decltype(&::accept4) known = nullptr;
  if (fails("accept4")) {
    errno = EMFILE;
    return -1;
  }
  return real(known, "accept4")(fd, address, length, flags);
}

__attribute__((visibility("default"))) int epoll_create1(int flags) noexcept {
  static decltype(&::epoll_create1) known = nullptr;
  if (fails("epoll_create1")) {
    errno = EMFILE;
    return -1;
  }
  return real(known, "epoll_create1")(flags);
}

__attribute__((visibility("default"))) int eventfd(unsigned value, int flags) noexcept {
  static decltype(&::eventfd) known = nullptr;
  if (fails("eventfd")) {
    errno = EMFILE;
    return -1;
  }
  return real(known, "eventfd")(value, flags);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*body)(void*),
                                                          void* argument) noexcept {
  static decltype(&::pthread_create) known = nullptr;
  return fails("pthread_create")
             ? EAGAIN
             : real(known, "pthread_create")(thread, attributes, body, argument);
}
}
