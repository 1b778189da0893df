// Handles the elements of a program's XML one after the other: each adds its content to the
// program.
#pragma once

#include <cstddef>
#include <string_view>

#include "msccl/program.h"
#include "msccl/whole.h"
#include "msccl/xml_attributes.h"

namespace unisono::msccl {

// REQUIRES: elements are nested as the format defines.
class ElementReader {
 public:
  explicit ElementReader(XmlFault& fault) : fault_(fault) {}

  void algorithm(const XmlAttributes& attributes);
  void gpu(const XmlAttributes& attributes);
  void block(const XmlAttributes& attributes);
  void step(const XmlAttributes& attributes);

  // Reports errors that only the whole text shows to the fault.
  MscclProgram finish() &&;

 private:
  void set_collective(std::string_view word);
  void check_connections(const ThreadBlock& block, int id);
  void check_step(const Step& step, const StepTraits& traits);

  XmlFault& fault_;
  MscclProgram program_ = {};
  int gpus_ = 0;  // the declared number of GPUs
  std::size_t steps_ = 0;
  Connections connections_ = {};
};

}  // namespace unisono::msccl
