#include "cli/foreign_file.h"

#include <algorithm>
#include <array>

namespace unisono::cli {
namespace {

constexpr std::size_t kLooked = 1 << 16;  // bytes of a file that say what it is

struct Foreign {
  std::array<std::string_view, 3> has;  // all of these; empty ones are left out
  std::string_view what;
};

constexpr Foreign kForeign[] = {
    {{"<topology", "<object type=\"Machine\""}, "an XML file of hwloc (lstopo)"},
    {{"<system", "<cpu ", "<pci "}, "a topology of NCCL (NCCL_TOPO_DUMP_FILE)"},
    {{"<graphs", "<graph "},
     "the graphs of NCCL (NCCL_GRAPH_DUMP_FILE), which contain no link speeds"},
    {{"npus_count", "topology"}, "a network of ASTRA-sim"},
    {{"\"attn_heads\"", "\"num_blocks\"", "\"feedforward\""}, "a model of Calculon"},
    {{"\"mem1\"", "\"networks\""}, "a system of Calculon"},
    {{"\"n_layers\"", "\"n_heads\"", "\"dim\""}, "a params.json of Llama or Mistral"},
    {{"\"peft_type\"", "base_model_name_or_path"},
     "the configuration of an adapter (LoRA), which names its model"},
    {{"\"weight_map\"", "\"metadata\""}, "an index of safetensors"},
    {{"\"_diffusers_version\"", "\"_class_name\""}, "the configuration of a diffusion model"},
    {{"\"tensor_par\"", "\"pipeline_par\""}, "an execution of Calculon"},
    {{"GPU0", "CPU Affinity"}, "a matrix of nvidia-smi topo -m"},
    {{"ROCm System Management Interface", "GPU0"}, "a report of rocm-smi"},
    {{"\"coll_perf\"", "\"metadata\""}, "a report of NCCL Inspector"},
    {{"Job summary", "Communicators...", "====="}, "an answer of NCCL's RAS (ncclras)"},
    {{"\"traceEvents\"", "\"schemaVersion\""}, "a trace of PyTorch's profiler"},
    {{"\"schema\"", "pytorch_"}, "an execution trace of PyTorch"}};

// Chakra's files are protobuf messages, each after its length; the first one has a version.
bool is_chakra(std::string_view text) {
  return text.size() > 8 && text[1] == '\x0a' && static_cast<unsigned char>(text[0]) < 0x80 &&
         static_cast<std::size_t>(text[2]) + 2 == static_cast<std::size_t>(text[0]) &&
         text.substr(3, static_cast<std::size_t>(text[2])).find('.') != std::string_view::npos;
}

}  // namespace

std::string foreign_file(std::string_view text) {
  text = text.substr(0, kLooked);
  if (is_chakra(text)) {
    return "an execution trace of Chakra (protobuf)";
  }
  if (text.starts_with("GGUF")) {
    return "a model as GGUF";
  }
  const auto* const found = std::ranges::find_if(kForeign, [&](const Foreign& one) {
    return std::ranges::all_of(
        one.has, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
  });
  return found == std::end(kForeign) ? std::string() : std::string(found->what);
}

}  // namespace unisono::cli
