// Groups and worlds that come and go: soak GROUPS WORLDS. Each rank measures the resources of its
// process after a tenth of them and at the end, and exits with 1 if they have grown.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "unisono/communicator.hpp"

namespace {

using unisono::Communicator;

struct Held {
  long resident_kib = 0;
  long descriptors = 0;
  long threads = 0;
  long mappings = 0;
};

long field(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == name) {
      long value = 0;
      status >> value;
      return value;
    }
  }
  return -1;
}

long lines_of(const char* path) {
  std::ifstream file(path);
  long lines = 0;
  for (std::string line; std::getline(file, line);) {
    ++lines;
  }
  return lines;
}

Held held() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return {.resident_kib = field("VmRSS:"),
          .descriptors = std::distance(begin(entries), end(entries)),
          .threads = field("Threads:"),
          .mappings = lines_of("/proc/self/maps")};
}

// Returns false if a resource grows by more than 1 KiB per thousand repetitions, and an allocator's
// reserve.
bool is_flat(const char* what, const Held& early, const Held& late, long times) {
  constexpr long kKeptKib = 512;
  const bool flat = late.resident_kib - early.resident_kib <= kKeptKib + times / 1000 &&
                    late.descriptors <= early.descriptors && late.threads <= early.threads &&
                    late.mappings <= early.mappings + 4;
  std::cout << (flat ? "flat " : "GROWS ") << what << " " << times << ": KiB " << early.resident_kib
            << " " << late.resident_kib << ", descriptors " << early.descriptors << " "
            << late.descriptors << ", threads " << early.threads << " " << late.threads
            << ", mappings " << early.mappings << " " << late.mappings << "\n";
  return flat;
}

template <typename Body>
bool soak(const char* what, long times, const Body& body) {
  Held early;
  for (long i = 0; i < times; ++i) {
    if (i == times / 10) {
      early = held();
    }
    body(i);
  }
  return is_flat(what, early, held(), times - times / 10);
}

void use(Communicator& comm) {
  std::vector<float> data(64, 1.0F);
  comm.all_reduce(std::span(data), unisono::sum);
}

int work(long groups, long worlds) {
  Communicator world = Communicator::connect({});
  bool flat = soak("groups", groups, [&](long i) {
    Communicator group = world.split(static_cast<int>((world.rank() + i) % 2), 0);
    use(group);
  });
  flat = soak("worlds", worlds,
              [&](long i) {
                unisono::ConnectOptions options;
                options.job = "soak-" + std::to_string(i);
                Communicator other = Communicator::connect(options);
                use(other);
              }) &&
         flat;
  world.barrier();
  return flat ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc == 3 ? work(std::stol(argv[1]), std::stol(argv[2])) : 2;
  } catch (const std::exception& error) {
    std::cout << error.what() << "\n";
    return 3;
  }
}
