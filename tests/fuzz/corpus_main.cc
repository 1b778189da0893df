// Runs the tests of a corpus, whose folder is the argument.
#include <iostream>

#include "corpus.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  unisono::fuzz::folder = argv[1];
  return RUN_ALL_TESTS();
}
