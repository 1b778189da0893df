// Golden files: every pipeline schedule of the catalogue for 4 ranks and 8 microbatches, a line for
// each rank. The folder is an argument; `--update` before it writes the files.
#include "golden.h"
#include "pipeline/catalog.h"
#include "pipeline/text.h"

namespace unisono::pipeline {
namespace {

golden::Files wanted_files() {
  golden::Files files;
  for (const Entry* entry : catalog()) {
    const Pipeline pipeline = build(
        *entry, {.ranks = 4, .chunks = entry->chunks == 0 ? 2 : entry->chunks, .microbatches = 8});
    std::string& text = files[std::string(entry->name) + "_p4_m8.txt"];
    for (const std::vector<Action>& actions : pipeline.actions) {
      text += actions_text(actions) + "\n";
    }
  }
  return files;
}

}  // namespace
}  // namespace unisono::pipeline

int main(int argc, char** argv) {
  return unisono::golden::run(argc, argv, unisono::pipeline::wanted_files());
}
