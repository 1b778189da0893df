// Ranks for tests: as threads, and as forked processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/env.h"
#include "base/unique_fd.h"
#include "bootstrap/local_world.h"
#include "unisono/error.hpp"

namespace unisono::comm::testing {

// Runs one rank. Returns an empty text, or the failure.
using Body = std::function<std::string(int rank)>;

inline std::string run_one(const Body& body, int rank) {
  try {
    return body(rank);
  } catch (const std::exception& error) {
    return error.what();
  }
}

inline std::vector<std::string> as_threads(int ranks, const Body& body) {
  std::vector<std::string> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { results[static_cast<std::size_t>(rank)] = run_one(body, rank); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return results;
}

// A forked process that runs `body` and returns its answer through a pipe.
class Child {
 public:
  Child(const Body& body, int rank) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
      throw Error(ErrorCode::resource, "no pipe");
    }
    out_.reset(ends[0]);
    const UniqueFd in(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      out_.reset();
      const std::string text = run_one(body, rank);
      _exit(::write(in.get(), text.data(), text.size()) < 0 ? 1 : 0);
    }
  }
  pid_t pid() const { return pid_; }
  std::string result() {
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(out_.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status == 0 ? text : text + " [ended with status " + std::to_string(status) + "]";
  }

 private:
  UniqueFd out_;
  pid_t pid_ = -1;
};

// Limits this process to its open descriptors and a given number of further ones. Reading the error
// removes the limit, because UBSan needs a pipe when it first looks at an object's type.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    set(static_cast<rlim_t>(next + more));
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { set(before_.rlim_cur); }

 private:
  void set(rlim_t most) {
    const rlimit limit{.rlim_cur = most, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  rlimit before_ = {};
};

// Runs ranks as forked processes. REQUIRES: this process has no other threads.
inline std::vector<std::string> as_processes(int ranks, const Body& body) {
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.emplace_back(body, rank);
  }
  std::vector<std::string> results;
  for (Child& child : children) {
    results.push_back(child.result());
  }
  return results;
}

// An event in one rank for which other ranks (threads or forked processes) wait. Make it before the
// ranks.
class SharedEvent {
 public:
  SharedEvent()
      : page_(::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        count_(new(page_) std::atomic<int>(0)) {}
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;
  ~SharedEvent() { ::munmap(page_, sizeof(std::atomic<int>)); }
  void happen() const { ++*count_; }
  // Waits until the event has happened `times` times. Returns false after a minute, because then
  // something hangs.
  bool wait(int times = 1) const {
    for (int ms = 0; ms < 60'000 && *count_ < times; ++ms) {
      ::usleep(1000);
    }
    return *count_ >= times;
  }

 private:
  void* page_;
  std::atomic<int>* count_;
};

inline void expect_all_empty(const std::vector<std::string>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_EQ(results[rank], "") << "rank " << rank;
  }
}

inline std::string unique_name(const char* what) {
  static std::atomic<int> counter = 0;
  return std::string("test-") + what + "-" + std::to_string(::getpid()) + "-" +
         std::to_string(counter++);
}

// Returns a loopback address that no other job uses, so that tests do not collide.
inline std::string loopback_address(const std::string& name) {
  const std::size_t job = std::hash<std::string>()(name);
  return "127." + std::to_string(job % 250 + 1) + "." + std::to_string(job / 250 % 250 + 1) + "." +
         std::to_string(job / 62'500 % 250 + 1) + ":29601";
}

// Places the ranks of a test as UNISONO_TEST_WORLD says. Unset: all on one host; "tcp": each on its
// own host; "mixed": two per host.
inline void place(ConnectOptions& options) {
  const std::string world = read_env("UNISONO_TEST_WORLD").value_or("");
  if (world.empty()) {
    return;
  }
  options.address = loopback_address(options.job);
  options.token = options.token.empty() ? "the token of a test" : options.token;
  if (world == "tcp") {
    options.transport = TransportKind::tcp;
  } else {
    options.host = "host-" + std::to_string(options.rank / 2);
  }
}

inline ConnectOptions options_for(int rank, int size, const std::string& job,
                                  int connect_timeout_ms = 60'000) {
  ConnectOptions options;
  options.rank = rank;
  options.size = size;
  options.job = job;
  options.connect_timeout_ms = connect_timeout_ms;
  place(options);
  return options;
}

inline constexpr const char* kToken = "0123456789abcdef";

// Options as if each rank were on its own host.
inline ConnectOptions net_options(int rank, int size, const std::string& job,
                                  int timeout_ms = 60'000) {
  ConnectOptions options = options_for(rank, size, job, timeout_ms);
  const std::size_t hash = std::hash<std::string>()(job);
  options.address = "127.3." + std::to_string(hash % 250 + 1) + "." +
                    std::to_string(hash / 250 % 250 + 1) + ":29602";
  options.token = kToken;
  options.transport = TransportKind::tcp;
  return options;
}

inline std::string join(const ConnectOptions& options) {
  LocalWorld::join(options)->all_gather({});
  return "joined";
}

}  // namespace unisono::comm::testing
