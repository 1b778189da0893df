// Golden files: every algorithm for 4 ranks, and for 5 if a power of two is a special case, as text
// that a reviewer can read. The folder is an argument; `--update` before it writes the files.
#include "golden.h"

#include "algorithms/catalog.h"
#include "schedule/text.h"

namespace unisono {
namespace {

// File name to text. Rooted algorithms have root 1, so that no code relies on root 0.
golden::Files wanted_files() {
  golden::Files files;
  for (const Algorithm* algorithm : catalog()) {
    for (const int ranks : {4, 5}) {
      const Shape shape{.ranks = ranks, .root = is_rooted(algorithm->collective) ? 1 : 0};
      if (!can_serve(*algorithm, shape)) {
        continue;
      }
      const std::string name = std::string(to_string(algorithm->collective)) + "_" +
                               std::string(algorithm->name) + "_n" + std::to_string(ranks) + ".txt";
      files[name] = to_text(build_schedule(*algorithm, shape));
    }
  }
  return files;
}

}  // namespace
}  // namespace unisono

int main(int argc, char** argv) {
  return unisono::golden::run(argc, argv, unisono::wanted_files());
}
