#include "base/json_text.h"
#include "pipeline/json.h"
#include "step/json.h"

namespace unisono::step {
namespace {

// Writes objects and lists, with commas between their elements.
class Text {
 public:
  Text& key(std::string_view name) {
    part(json_string(name) + ": ");
    is_first_ = true;  // no comma before the following value
    return *this;
  }
  void part(const std::string& text) {
    out_ += is_first_ ? text : ", " + text;
    is_first_ = false;
  }
  void open(const char* bracket) {
    part(bracket);
    is_first_ = true;
  }
  void close(const char* bracket) {
    out_ += bracket;
    is_first_ = false;
  }
  void line(const char* indent) {
    out_ += (is_first_ ? "\n" : ",\n") + std::string(indent);
    is_first_ = true;
  }
  void text(std::string_view name, const std::string& value) { key(name).part(json_string(value)); }
  void number(std::string_view name, double value) { key(name).part(json_number(value)); }
  void names(std::string_view name, const std::vector<std::string>& values) {
    key(name).open("[");
    for (const std::string& value : values) {
      part(json_string(value));
    }
    close("]");
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  bool is_first_ = true;
};

const char* name_of(Cut cut) {
  constexpr const char* kNames[] = {"even", "rows", "heads", "kv_heads"};
  return kNames[static_cast<std::size_t>(cut)];
}

const char* name_of(Tensor::Kind kind) {
  constexpr const char* kNames[] = {"weight", "cache", "input", "activation"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(Node::Kind kind) {
  constexpr const char* kNames[] = {"compute", "redistribute", "dispatch",  "combine",
                                    "send",    "broadcast",    "sum_stages"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(StagePass pass) {
  constexpr const char* kNames[] = {"none", "forward", "backward_input", "backward_weight"};
  return kNames[static_cast<std::size_t>(pass)];
}

const char* name_of(parallel::ContextOrder order) {
  return order == parallel::ContextOrder::zigzag    ? "zigzag"
         : order == parallel::ContextOrder::striped ? "striped"
                                                    : "contiguous";
}

void write(Text& out, const Placements& placements) {
  out.open("{");
  for (const auto& [axis, placement] : placements) {
    out.text(axis, to_text(placement));
  }
  out.close("}");
}

void write(Text& out, const Dim& dim) {
  out.open("{");
  out.text("name", dim.name);
  out.number("size", static_cast<double>(dim.size));
  if (dim.cut != Cut::even) {
    out.text("cut", name_of(dim.cut));
  }
  if (dim.batch != 1) {
    out.number("batch", static_cast<double>(dim.batch));
  }
  if (!dim.like.empty()) {
    out.text("like", dim.like);
  }
  out.close("}");
}

void write(Text& out, const Tensor& tensor) {
  out.open("{");
  out.text("name", tensor.name);
  out.text("kind", name_of(tensor.kind));
  out.names("dims", tensor.dims);
  out.number("element_bytes", tensor.element_bytes);
  if (tensor.is_layered) {
    out.key("layered").part("true");
  }
  if (!tensor.placement.empty()) {
    out.key("placement");
    write(out, tensor.placement);
  }
  out.close("}");
}

void write_computation(Text& out, const Node& node) {
  if (!node.pointwise.empty()) {
    out.names("pointwise", node.pointwise);
  }
  if (!node.summed.empty()) {
    out.names("summed", node.summed);
  }
  if (node.linear != Node::Linear::none) {
    out.text("linear", node.linear == Node::Linear::each ? "each" : "together");
  }
  if (node.flops != 0) {
    out.number("flops", node.flops);
  }
  if (node.share != 1) {
    out.number("share", node.share);
  }
}

void write_move(Text& out, const Node& node) {
  out.text("axes", node.axes);
  out.text("from", to_text(node.from));
  out.text("to", to_text(node.to));
  if (!node.by.empty()) {
    out.text("by", node.by);
  }
  if (node.rows_sent != 1) {
    out.number("rows_sent", node.rows_sent);
  }
}

void write(Text& out, const Node& node) {
  out.open("{");
  out.text(name_of(node.kind), node.name);
  out.names("reads", node.reads);
  out.names("writes", node.writes);
  if (!node.renamed.empty()) {
    out.key("renamed").open("{");
    for (const auto& [from, to] : node.renamed) {
      out.text(from, to);
    }
    out.close("}");
  }
  if (node.kind == Node::Kind::compute) {
    write_computation(out, node);
  } else if (node.kind != Node::Kind::send && node.kind != Node::Kind::broadcast &&
             node.kind != Node::Kind::sum_stages) {
    write_move(out, node);
  }
  out.close("}");
}

void write(Text& out, const Section& section) {
  out.open("{");
  out.text("name", section.name);
  if (section.stage != kAllStages) {
    out.number("stage", section.stage);
  }
  if (section.pass != StagePass::none) {
    out.text("pass", name_of(section.pass));
  }
  if (section.first_layer >= 0) {
    out.number("first_layer", section.first_layer);
  }
  out.number("repeat", section.repeat);
  out.key("nodes").open("[");
  for (const Node& node : section.nodes) {
    out.line("   ");
    write(out, node);
  }
  out.close("]");
  out.close("}");
}

template <typename Rows>
void write_rows(Text& out, std::string_view name, const Rows& rows) {
  out.line(" ");
  out.key(name).open("[");
  for (const auto& row : rows) {
    out.line("  ");
    write(out, row);
  }
  out.close("]");
}

}  // namespace

std::string to_json(const Step& step) {
  Text out;
  out.open("{");
  out.text("format", std::string(kStepFormat));
  out.text("name", step.name);
  out.text("mesh", step.mesh);
  if (!step.stage_axis.empty()) {
    out.text("stage_axis", step.stage_axis);
  }
  if (step.pipeline) {
    std::string text = pipeline::to_json(*step.pipeline);
    text.pop_back();  // the line break after the last line
    out.line(" ");
    out.key("pipeline").part(text);
    out.line(" ");
  }
  out.names("data_axes", step.data_axes);
  out.names("context_axes", step.context_axes);
  out.text("order", name_of(step.order));
  if (step.memory_bytes > 0) {
    out.number("memory_bytes", step.memory_bytes);
  }
  write_rows(out, "dims", step.dims);
  write_rows(out, "tensors", step.tensors);
  write_rows(out, "sections", step.sections);
  out.line(" ");
  out.key("results").open("[");
  for (const Step::Result& result : step.results) {
    out.open("{");
    out.text("tensor", result.tensor);
    out.key("placement");
    write(out, result.placement);
    if (result.is_everywhere) {
      out.key("everywhere").part("true");
    }
    out.close("}");
  }
  out.close("]");
  out.close("}\n");
  return out.take();
}

}  // namespace unisono::step
