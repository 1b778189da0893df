// Reading with expat, which checks that the text is XML; what it means is checked here.
#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "msccl/xml.h"

namespace unisono::msccl {
namespace {

constexpr int kMostGpus = 4096;
constexpr int kMostChunks = 1 << 20;
constexpr std::size_t kMostSteps = 20'000'000;
// Steps, times thread blocks of a GPU: what a proof knows of each at each, about 1 GB.
constexpr std::size_t kMostKnown = std::size_t{1} << 28;

class Reader {
 public:
  explicit Reader(XML_Parser parser) : parser_(parser) {}

  void start(std::string_view element, const char** attributes) {
    if (!wrong_.empty()) {
      return;
    }
    attributes_.clear();
    for (const char** next = attributes; *next != nullptr; next += 2) {
      attributes_.emplace(next[0], next[1]);
    }
    const std::string path = path_ += fmt::format("/{}", element);
    if (path == "/algo") {
      start_algorithm();
    } else if (path == "/algo/gpu") {
      start_gpu();
    } else if (path == "/algo/gpu/tb") {
      start_block();
    } else if (path == "/algo/gpu/tb/step") {
      start_step();
    } else {
      refuse(fmt::format("no place for <{}> here", element));
    }
  }
  void end() { path_.resize(path_.rfind('/')); }

  bool is_wrong() const { return !wrong_.empty(); }
  Parsed<MscclProgram> finish() {
    if (!is_wrong()) {
      check_whole();
    }
    if (is_wrong()) {
      return Parsed<MscclProgram>::failure(wrong_, fmt::format("line {}", line_));
    }
    return Parsed<MscclProgram>::success(std::move(program_));
  }

 private:
  void refuse(std::string what) {
    if (wrong_.empty()) {
      wrong_ = std::move(what);
      line_ = XML_GetCurrentLineNumber(parser_);
      XML_StopParser(parser_, XML_FALSE);
    }
  }

  std::optional<std::string_view> text(const char* name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::nullopt
                                      : std::optional<std::string_view>(found->second);
  }

  int number(const char* name, int least, int most, std::optional<int> fallback = std::nullopt) {
    const std::optional<std::string_view> word = text(name);
    if (!word && fallback) {
      return *fallback;
    }
    int value = 0;
    if (word) {
      const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
      if (error == std::errc() && end == word->data() + word->size() && value >= least &&
          value <= most) {
        return value;
      }
    }
    refuse(
        word ? fmt::format("{} cannot be \"{}\": a number from {} to {}", name, *word, least, most)
             : fmt::format("{} is missing", name));
    return least;
  }

  void start_algorithm() {
    program_.name = text("name").value_or("");
    program_.protocol = text("proto").value_or("Simple");
    program_.channels = number("nchannels", 1, 1024, 1);
    program_.chunks_per_loop = number("nchunksperloop", 1, kMostChunks);
    program_.in_place = number("inplace", 0, 1, 1) == 1;
    program_.out_of_place = number("outofplace", 0, 1, program_.in_place ? 0 : 1) == 1;
    gpus_ = number("ngpus", 1, kMostGpus);
    program_.root = number("root", 0, gpus_ - 1, 0);
    const std::string_view word = text("coll").value_or("");
    const auto* const found =
        std::find_if(kCollectives.begin(), kCollectives.end(), [&](const CollectiveTraits& one) {
          return !word.empty() && word_of(one.collective) == word;
        });
    if (found == kCollectives.end()) {
      refuse(
          fmt::format("coll=\"{}\" says no collective that could be checked: allreduce, allgather, "
                      "reduce_scatter, alltoall, broadcast, reduce",
                      word));
      return;
    }
    program_.collective = found->collective;
    const Holding held = traits_of(found->collective).input;
    if ((held == Holding::part || held == Holding::pairs || found->output == Holding::part) &&
        program_.chunks_per_loop % gpus_ != 0) {
      refuse(fmt::format("{} chunks cannot be divided among {} GPUs", program_.chunks_per_loop,
                         gpus_));
    }
  }

  void start_gpu() {
    const int id = number("id", 0, gpus_ - 1);
    if (id != static_cast<int>(program_.gpus.size())) {
      refuse(fmt::format("GPU {} stands where GPU {} belongs", id, program_.gpus.size()));
      return;
    }
    program_.gpus.push_back(
        {.chunks = {number("i_chunks", 0, kMostChunks), number("o_chunks", 0, kMostChunks),
                    number("s_chunks", 0, kMostChunks, 0)}});
    const int gpu = id;
    // Where input and output are one, files give it a size under one of its names only.
    if (program_.in_place && !program_.out_of_place) {
      const Schedule shape = [&] {
        MscclProgram whole = program_;
        whole.gpus.resize(static_cast<std::size_t>(gpus_));
        return shape_of(whole);
      }();
      auto& chunks = program_.gpus.back().chunks;
      chunks[0] = std::max(chunks[0], executors::input_chunks(shape, gpu));
      chunks[1] = std::max(chunks[1], executors::output_chunks(shape, gpu));
    }
  }

  void start_block() {
    std::vector<ThreadBlock>& blocks = program_.gpus.back().blocks;
    const int id = number("id", 0, std::numeric_limits<int>::max());
    if (id != static_cast<int>(blocks.size())) {
      refuse(fmt::format("thread block {} stands where {} belongs", id, blocks.size()));
      return;
    }
    blocks.push_back({.send = number("send", -1, gpus_ - 1),
                      .receive = number("recv", -1, gpus_ - 1),
                      .channel = number("chan", 0, 1023, 0)});
    const int gpu = static_cast<int>(program_.gpus.size()) - 1;
    const ThreadBlock& block = blocks.back();
    if (block.send == gpu || block.receive == gpu) {
      refuse(fmt::format("thread block {} of GPU {} is connected to its own GPU", id, gpu));
    }
    for (const bool sends : {true, false}) {
      const int peer = sends ? block.send : block.receive;
      if (peer >= 0 && !connections_.insert({gpu, peer, block.channel, sends}).second) {
        refuse(fmt::format("two thread blocks of GPU {} {} GPU {} on channel {}", gpu,
                           sends ? "send to" : "receive from", peer, block.channel));
      }
    }
  }

  BufferPlace place(const char* buffer, const char* offset, bool is_used) {
    const std::string_view word = text(buffer).value_or("");
    const std::optional<Buffer> found = executors::buffer_called(word);
    if (!found) {
      if (is_used) {
        refuse(fmt::format("{} cannot be \"{}\": i, o or s", buffer, word));
      }
      return {};
    }
    return {.buffer = *found, .offset = number(offset, is_used ? 0 : -1, kMostChunks)};
  }

  void start_step() {
    Gpu& gpu = program_.gpus.back();
    std::vector<Step>& steps = gpu.blocks.back().steps;
    const int id = number("s", 0, std::numeric_limits<int>::max());
    if (id != static_cast<int>(steps.size())) {
      refuse(fmt::format("step {} stands where {} belongs", id, steps.size()));
      return;
    }
    const std::string_view word = text("type").value_or("");
    const auto* const found = std::find_if(kSteps.begin(), kSteps.end(),
                                           [&](const StepTraits& one) { return one.word == word; });
    if (found == kSteps.end()) {
      refuse(fmt::format("no step has type \"{}\": s, r, rcs, rrs, rrc, rrcs, cpy, re, nop", word));
      return;
    }
    const bool moves = found->type != StepType::nop;
    Step step{.type = found->type,
              .source = place("srcbuf", "srcoff", found->reads_source),
              .target = place("dstbuf", "dstoff", found->writes_target),
              .chunks = number("cnt", moves ? 1 : 0, kMostChunks),
              .depends_on_block = number("depid", -1, std::numeric_limits<int>::max(), -1),
              .depends_on_step = number("deps", -1, std::numeric_limits<int>::max(), -1),
              .tells = number("hasdep", 0, 1, 0) == 1};
    check_step(step, *found);
    if (++steps_ > kMostSteps) {
      refuse(fmt::format("more than {} steps", kMostSteps));
    }
    steps.push_back(step);
  }

  void check_step(const Step& step, const StepTraits& traits) {
    const Gpu& gpu = program_.gpus.back();
    const ThreadBlock& block = gpu.blocks.back();
    if ((traits.sends && block.send < 0) || (traits.receives && block.receive < 0)) {
      refuse(fmt::format("step {} of a thread block that {} nobody", traits.word,
                         traits.sends && block.send < 0 ? "sends to" : "receives from"));
    }
    for (const bool is_source : {true, false}) {
      if (is_source ? !traits.reads_source : !traits.writes_target) {
        continue;
      }
      const BufferPlace& used = is_source ? step.source : step.target;
      const int size = gpu.chunks.at(static_cast<std::size_t>(used.buffer));
      if (used.offset + step.chunks > size) {
        refuse(fmt::format("{} {}, {} {} end behind the {} chunks of the buffer",
                           is_source ? "srcoff" : "dstoff", used.offset, step.chunks,
                           step.chunks == 1 ? "chunk" : "chunks", size));
      }
    }
  }

  void check_whole() {
    if (static_cast<int>(program_.gpus.size()) != gpus_) {
      return refuse(
          fmt::format("{} GPUs are described, ngpus says {}", program_.gpus.size(), gpus_));
    }
    for (const auto& [gpu, peer, channel, sends] : connections_) {
      if (!connections_.contains({peer, gpu, channel, !sends})) {
        return refuse(fmt::format("GPU {} {} GPU {} on channel {}, where no thread block {}", gpu,
                                  sends ? "sends to" : "receives from", peer, channel,
                                  sends ? "receives from it" : "sends to it"));
      }
    }
    for (std::size_t g = 0; g < program_.gpus.size(); ++g) {
      const std::vector<ThreadBlock>& blocks = program_.gpus[g].blocks;
      if (steps_ > kMostKnown / std::max<std::size_t>(blocks.size(), 1)) {
        return refuse(
            fmt::format("{} steps, with {} thread blocks of GPU {}, are more than are read", steps_,
                        blocks.size(), g));
      }
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        for (std::size_t s = 0; s < blocks[b].steps.size(); ++s) {
          const Step& step = blocks[b].steps[s];
          const auto on = static_cast<std::size_t>(step.depends_on_block);
          if (step.depends_on_block >= 0 &&
              (on >= blocks.size() || step.depends_on_step < 0 ||
               static_cast<std::size_t>(step.depends_on_step) >= blocks[on].steps.size())) {
            return refuse(
                fmt::format("GPU {}, thread block {}, step {} depends on step {} of block {}, "
                            "which is not there",
                            g, b, s, step.depends_on_step, step.depends_on_block));
          }
        }
      }
    }
  }

  XML_Parser parser_;
  MscclProgram program_;
  int gpus_ = 0;
  std::size_t steps_ = 0;
  std::string path_;
  std::map<std::string, std::string, std::less<>> attributes_;
  std::set<std::tuple<int, int, int, bool>> connections_;  // gpu, peer, channel, sends
  std::string wrong_;
  std::size_t line_ = 0;
};

}  // namespace

Parsed<MscclProgram> parse_xml(std::string_view text) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  Reader reader(parser.get());
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(
      parser.get(),
      [](void* to, const XML_Char* name, const XML_Char** attributes) {
        static_cast<Reader*>(to)->start(name, attributes);
      },
      [](void* to, const XML_Char* /*name*/) { static_cast<Reader*>(to)->end(); });
  // Expat takes an int for the length; no program is near that.
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return Parsed<MscclProgram>::failure("larger than 2 GiB", "line 1");
  }
  const XML_Status status =
      XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (status != XML_STATUS_OK && !reader.is_wrong()) {
    return Parsed<MscclProgram>::failure(
        XML_ErrorString(XML_GetErrorCode(parser.get())),
        fmt::format("line {}", XML_GetCurrentLineNumber(parser.get())));
  }
  return reader.finish();
}

}  // namespace unisono::msccl
