#include "cli/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace unisono::cli {
namespace {

constexpr std::size_t kLooked = 1 << 16;  // bytes at the beginning of a file that identify it

struct Foreign {
  std::array<std::string_view, 3> has;  // the file contains all of these; empty ones are ignored
  std::string_view what;
};

constexpr Foreign kForeign[] = {
    {{"<topology", "<object type=\"Machine\""}, "an XML file of hwloc (lstopo)"},
    {{"<system", "<cpu ", "<pci "}, "a topology of NCCL (NCCL_TOPO_DUMP_FILE)"},
    {{"<graphs", "<graph "}, "the graphs of NCCL (NCCL_GRAPH_DUMP_FILE; they have no link speeds)"},
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
    {{"GPU0", "Legend:", "OK "}, "a matrix of nvidia-smi topo -p2p (it has no link speeds)"},
    {{"<nvidia_smi_log"}, "a report of nvidia-smi -q -x"},
    {{"HL-SMI Version"}, "a report of hl-smi"},
    {{"NPU0", "HCCS"}, "a matrix of npu-smi info -t topo"},
    {{"topologies-per-dim"}, "a network of ASTRA-sim"},
    {{"digraph ", "->"}, "a graph of Graphviz"},
    {{"LINK TYPE TABLE"}, "a report of amd-smi topology"},
    {{"Machine (", "NUMANode L#"}, "the output of lstopo"},
    {{"available: ", "node distances:"}, "the output of numactl --hardware"},
    {{"-[0000:"}, "the output of lspci -t"},
    {{"vendid=", "switchguid"}, "the output of ibnetdiscover"},
    {{"SwitchName="}, "a topology.conf of Slurm"},
    {{"<platform", "<host "}, "a platform of SimGrid"},
    {{"GPU 0:", "Link 0:", "GB/s"}, "the output of nvidia-smi nvlink --status"},
    {{"ROCm System Management Interface", "GPU0"}, "a report of rocm-smi"},
    {{"\"coll_perf\"", "\"metadata\""}, "a report of NCCL Inspector"},
    {{"#bytes", "#iterations", "Mpps"}, "the output of perftest (ib_write_bw), of two hosts"},
    {{"#bytes", "#iterations", "usec"}, "the output of perftest (ib_write_lat), of two hosts"},
    {{"Algorithm:", "elements", "p50 (us)"}, "the output of Gloo's benchmark"},
    {{"nvbandwidth Version"}, "the output of nvbandwidth, which tests copies"},
    {{"P2P (Peer-to-Peer) GPU Bandwidth"},
     "the output of p2pBandwidthLatencyTest, which tests copies"},
    {{"# OMB-Py "}, "the output of OMB-Py (the OSU micro-benchmarks in Python)"},
    {{"Performance of", "Throughput (Gbps)"}, "the output of DeepSpeed's communication benchmark"},
    {{"COMMS-RES-"}, "the output of PARAM's communication benchmark"},
    {{"Job summary", "Communicators...", "====="}, "an answer of NCCL's RAS (ncclras)"},
    {{"\"traceEvents\"", "\"schemaVersion\""}, "a trace of PyTorch's profiler"},
    {{"\"schema\"", "\"pid\"", "\"nodes\""},
     "an execution trace of PyTorch (ExecutionTraceObserver, as Chakra converts)"}};

// A file of Chakra is a sequence of protobuf messages, each preceded by its length; the first
// message has a version.
bool is_chakra(std::string_view text) {
  return text.size() > 8 && text[1] == '\x0a' && static_cast<unsigned char>(text[0]) < 0x80 &&
         static_cast<std::size_t>(text[2]) + 2 == static_cast<std::size_t>(text[0]) &&
         text.substr(3, static_cast<std::size_t>(text[2])).find('.') != std::string_view::npos;
}

// The file begins with the length of a JSON header, and the header.
bool is_safetensors(std::string_view text) {
  constexpr std::uint64_t kMostHeader = 100'000'000;
  std::uint64_t header = 0;
  if (text.size() <= sizeof(header)) {
    return false;
  }
  std::memcpy(&header, text.data(), sizeof(header));
  return header >= 2 && header <= kMostHeader && text[sizeof(header)] == '{';
}

std::string_view binary_file(std::string_view text) {
  return is_chakra(text)                       ? "an execution trace of Chakra (protobuf)"
         : text.starts_with("GGUF")            ? "a model as GGUF"
         : is_safetensors(text)                ? "a weights file (safetensors)"
         : text.starts_with("PK\x03\x04")      ? "a ZIP archive, as torch.save() writes it"
         : text.starts_with("\x89HDF\r\n")     ? "an HDF5 file"
         : text.starts_with("SQLite format 3") ? "an SQLite database, as Nsight Systems exports it"
                                               : "";
}

}  // namespace

std::string foreign_binary_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLooked, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return std::string(binary_file(text));
}

std::string foreign_file(std::string_view text) {
  text = text.substr(0, kLooked);
  if (const std::string_view binary = binary_file(text); !binary.empty()) {
    return std::string(binary);
  }
  const auto* const found = std::ranges::find_if(kForeign, [&](const Foreign& one) {
    return std::ranges::all_of(
        one.has, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
  });
  return found == std::end(kForeign) ? std::string() : std::string(found->what);
}

bool begins_as_json(std::string_view text) {
  text.remove_prefix(text.starts_with("\xef\xbb\xbf") ? 3 : 0);  // a byte order mark
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace unisono::cli
