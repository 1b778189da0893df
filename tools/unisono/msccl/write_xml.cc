#include <fmt/format.h>

#include <iterator>

#include "msccl/xml.h"

namespace unisono::msccl {
namespace {

using executors::letter_of;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

}  // namespace

std::string to_xml(const MscclProgram& program) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" "
                 "ngpus=\"{}\" coll=\"{}\" inplace=\"{:d}\" outofplace=\"{:d}\"{}>\n",
                 escaped(program.name), program.protocol, program.channels, program.chunks_per_loop,
                 program.gpus.size(), word_of(program.collective), program.in_place,
                 program.out_of_place,
                 is_rooted(program.collective) ? fmt::format(" root=\"{}\"", program.root) : "");
  for (std::size_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
    const auto& [chunks, blocks] = program.gpus[gpu];
    fmt::format_to(out, "  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", gpu,
                   chunks[0], chunks[1], chunks[2]);
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      fmt::format_to(out, "    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", block,
                     blocks[block].send, blocks[block].receive, blocks[block].channel);
      for (std::size_t i = 0; i < blocks[block].steps.size(); ++i) {
        const Step& step = blocks[block].steps[i];
        fmt::format_to(out,
                       "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" "
                       "dstoff=\"{}\" cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{:d}\"/>\n",
                       i, traits_of(step.type).word, letter_of(step.source.buffer),
                       step.source.offset, letter_of(step.target.buffer), step.target.offset,
                       step.chunks, step.depends_on_block, step.depends_on_step, step.tells);
      }
      text += "    </tb>\n";
    }
    text += "  </gpu>\n";
  }
  text += "</algo>\n";
  return text;
}

}  // namespace unisono::msccl
