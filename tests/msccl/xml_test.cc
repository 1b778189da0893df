// Invalid MSCCL programs are refused, with the line of the error.
#include <gtest/gtest.h>

#include <random>

#include "damaged_text.h"
#include "msccl/check.h"
#include "msccl/xml.h"
#include "programs.h"

namespace unisono::msccl {
namespace {

constexpr const char* kHead =
    "<algo name=\"a\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"allreduce\" inplace=\"1\">\n";

struct Refused {
  std::string text;
  const char* message;
  const char* position;
};

TEST(MscclXml, Refuses) {
  const std::string gpu = "<gpu id=\"0\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">\n";
  const std::string block = "<tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n";
  for (const Refused& one : {
           Refused{"", "no element found", "line 1"},
           Refused{"{}", "not well-formed", "line 1"},
           Refused{"<algo>", "nchunksperloop is missing", "line 1"},
           Refused{"<a/>", "<a> is not allowed here", "line 1"},
           Refused{"<algo nchunksperloop=\"2\" ngpus=\"2\" coll=\"custom\"/>", "coll=\"custom\"",
                   "line 1"},
           Refused{"<algo nchunksperloop=\"3\" ngpus=\"2\" coll=\"allgather\"/>",
                   "3 chunks cannot be divided among 2 GPUs", "line 1"},
           Refused{std::string(kHead) + "</algo>", "0 GPUs are described, but ngpus is 2",
                   "line 2"},
           Refused{kHead + gpu + "<tb id=\"0\" send=\"0\" recv=\"-1\"/></gpu></algo>",
                   "connected to its own GPU", "line 3"},
           Refused{kHead + gpu + "<tb id=\"1\" send=\"1\" recv=\"-1\"/></gpu></algo>",
                   "found thread block 1 where 0 is expected", "line 3"},
           Refused{kHead + gpu + block + "<step s=\"0\" type=\"x\"/>", "unknown step type \"x\"",
                   "line 4"},
           Refused{kHead + gpu + block +
                       "<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"1\" cnt=\"2\"/>",
                   "srcoff 1, 2 chunks end after the buffer's 2 chunks", "line 4"},
           Refused{kHead + gpu + block +
                       "<step s=\"0\" type=\"s\" srcbuf=\"q\" srcoff=\"1\" cnt=\"1\"/>",
                   "srcbuf cannot be \"q\"", "line 4"},
           Refused{kHead + gpu + "</gpu><gpu id=\"1\" i_chunks=\"2\" o_chunks=\"2\">" +
                       "<tb id=\"0\" send=\"0\" recv=\"-1\"/></gpu></algo>",
                   "GPU 1 sends to GPU 0 on channel 0, where no thread block receives", "line 3"},
       }) {
    const Parsed<MscclProgram> parsed = parse_xml(one.text);
    EXPECT_FALSE(parsed) << one.text;
    EXPECT_NE(parsed.message.find(one.message), std::string::npos) << parsed.message;
    EXPECT_EQ(parsed.position, one.position) << one.text;
  }
}

// A file of 1 MB whose proof would need too much memory.
TEST(MscclXml, RefusesWhatNoProofCanHold) {
  std::string text =
      "<algo name=\"a\" nchunksperloop=\"1\" ngpus=\"1\" coll=\"allreduce\" inplace=\"1\">"
      "<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">";
  for (int block = 0; block < 17'000; ++block) {
    text += "<tb id=\"" + std::to_string(block) +
            "\" send=\"-1\" recv=\"-1\" chan=\"0\"><step s=\"0\" type=\"nop\" cnt=\"0\"/></tb>";
  }
  const Parsed<MscclProgram> parsed = parse_xml(text + "</gpu></algo>");
  EXPECT_EQ(parsed.message,
            "17000 steps, with 17000 thread blocks of GPU 0, exceed what can be read");
}

TEST(MscclXml, DamagedBytesNeverCrash) {
  const std::string whole = to_xml(testing::all_pairs(3));
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    if (const Parsed<MscclProgram> parsed = parse_xml(executors::testing::damaged(whole, random))) {
      check(*parsed.value);
      ++read;
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace unisono::msccl
