// A rank that meets the others, and prints the error that this ends with: "LOST peer ms text", with
// how long it took since the file `cut` appeared.
//   vanish FOLDER lobby        by rank 0's port
//   vanish FOLDER cards LATE   by cards in the folder; rank LATE comes when there is a file `late`
//   vanish FOLDER idle         by rank 0's port; then it does nothing until there is a file `go`,
//   and
//                              prints "SAFE" after a barrier
// With a file `wait`, ranks with cards begin to connect when there is a file `go`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "unisono/communicator.hpp"

namespace {

namespace fs = std::filesystem;

void await(const fs::path& file) {
  while (!fs::exists(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void write(const fs::path& file, const std::string& text) {
  const fs::path part = file.string() + ".part";
  std::ofstream(part, std::ios::binary) << text;
  fs::rename(part, file);
}

std::string read(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// File times and this process use the same clock.
long ms_since(const fs::path& file) {
  std::error_code none;
  const auto then = fs::last_write_time(file, none);
  return none ? -1
              : static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                      fs::file_time_type::clock::now() - then)
                                      .count());
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path folder = argv[1];
  const int rank = std::atoi(std::getenv("RANK"));        // NOLINT
  const int size = std::atoi(std::getenv("WORLD_SIZE"));  // NOLINT
  unisono::ConnectOptions options;
  if (std::string(argv[2]) == "cards" && argc > 3) {
    const bool late = std::atoi(argv[3]) == rank;
    options.bootstrap = [=](const std::string& mine) {
      write(folder / ("card" + std::to_string(rank)), mine);
      std::vector<std::string> cards;
      for (int other = 0; other < size; ++other) {
        const fs::path card = folder / ("card" + std::to_string(other));
        await(card);
        cards.push_back(read(card));
      }
      if (fs::exists(folder / "wait")) {
        await(folder / "go");
      }
      if (late) {
        await(folder / "late");
      }
      return cards;
    };
  }
  try {
    auto world = unisono::Communicator::connect(options);
    if (std::string(argv[2]) == "idle") {
      write(folder / ("met" + std::to_string(rank)), "");
      await(folder / "go");
      world.barrier();
      std::printf("SAFE\n");
      return 0;
    }
    for (;;) {
      world.barrier();
    }
  } catch (const unisono::Error& error) {
    std::string text = error.what();
    text.resize(std::min(text.size(), text.find('\n')));
    std::printf("LOST %d %ld %s\n", error.context().peer, ms_since(folder / "cut"), text.c_str());
    return error.code() == unisono::ErrorCode::peer_lost ? 3 : 4;
  }
}
