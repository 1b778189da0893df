// The seeds of frames, handshakes and cards, whole, cut anywhere and with single bytes changed. The
// folders are below the argument.
#include <gtest/gtest.h>

#include "corpus.h"
#include "rendezvous_card_property.h"
#include "tcp_frames_property.h"
#include "tcp_handshake_property.h"

namespace unisono {
namespace {

template <typename Property>
void expect_to_hold(const char* name, const Property& property) {
  const auto seeds = fuzz::folder;
  fuzz::folder = seeds / name;
  const auto files = fuzz::corpus();
  fuzz::folder = seeds;
  EXPECT_GE(files.size(), 3U);
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(property(file.text), "");
    fuzz::expect_to_hold_damaged(file, 60, property);
  }
}

TEST(TcpCorpus, FramesAreNoTrouble) {
  expect_to_hold("tcp_frames", fuzz::tcp_frames_property);
}

TEST(TcpCorpus, NobodyIsLetIn) {
  expect_to_hold("tcp_handshake", fuzz::tcp_handshake_property);
}

TEST(TcpCorpus, CardsAreReadBackOrRefused) {
  expect_to_hold("rendezvous_card", fuzz::rendezvous_card_property);
}

}  // namespace
}  // namespace unisono
