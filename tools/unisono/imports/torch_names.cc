// PyTorch's names of collectives and types.
#include <algorithm>
#include <array>
#include <utility>

#include "imports/imports.h"

namespace unisono::cli {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

constexpr std::array<Name, 27> kCollectives = {
    {{"all_reduce", "all_reduce"},
     {"allreduce", "all_reduce"},
     {"allreduce_coalesced", "all_reduce"},
     {"all_reduce_coalesced", "all_reduce"},
     {"sparse_all_reduce", "all_reduce"},
     {"all_reduce_barrier", "barrier"},
     {"all_gather", "all_gather"},
     {"allgather", "all_gather"},
     {"_all_gather_base", "all_gather"},
     {"_allgather_base", "all_gather"},
     {"all_gather_coalesced", "all_gather"},
     {"all_gather_into_tensor_coalesced", "all_gather"},
     {"allgather_into_tensor_coalesced", "all_gather"},
     {"reduce_scatter", "reduce_scatter"},
     {"_reduce_scatter_base", "reduce_scatter"},
     {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
     {"all_to_all", "all_to_all"},
     {"alltoall", "all_to_all"},
     {"alltoall_base", "all_to_all"},
     {"all_to_allv", "all_to_all"},
     {"broadcast", "broadcast"},
     {"_broadcast_oop", "broadcast"},
     {"reduce", "reduce"},
     {"_reduce_oop", "reduce"},
     {"gather", "gather"},
     {"scatter", "scatter"},
     {"barrier", "barrier"}}};

struct Type {
  std::string_view torch;
  std::string_view name;
  int bytes;
};
// Some types have no name in unisono, but a size.
constexpr std::array<Type, 44> kTorchTypes = {{{"Float", "f32", 4},
                                               {"float", "f32", 4},
                                               {"BFloat16", "bf16", 2},
                                               {"c10::BFloat16", "bf16", 2},
                                               {"Half", "f16", 2},
                                               {"c10::Half", "f16", 2},
                                               {"Double", "f64", 8},
                                               {"double", "f64", 8},
                                               {"Long", "i64", 8},
                                               {"long int", "i64", 8},
                                               {"Int", "i32", 4},
                                               {"int", "i32", 4},
                                               {"Short", "", 2},
                                               {"short int", "", 2},
                                               {"Char", "i8", 1},
                                               {"signed char", "i8", 1},
                                               {"Byte", "u8", 1},
                                               {"unsigned char", "u8", 1},
                                               {"Bool", "bool", 1},
                                               {"bool", "bool", 1},
                                               {"UInt16", "", 2},
                                               {"UInt32", "u32", 4},
                                               {"UInt64", "u64", 8},
                                               {"Float8_e4m3fn", "f8e4m3", 1},
                                               {"Float8_e5m2", "f8e5m2", 1},
                                               {"ComplexHalf", "", 4},
                                               {"ComplexFloat", "", 8},
                                               {"c10::complex<float>", "", 8},
                                               {"ComplexDouble", "", 16},
                                               {"c10::complex<double>", "", 16},
                                               {"c10::complex<c10::Half>", "", 4},
                                               {"short unsigned int", "", 2},
                                               {"unsigned int", "u32", 4},
                                               {"long unsigned int", "u64", 8},
                                               {"c10::Float8_e4m3fn", "f8e4m3", 1},
                                               {"c10::Float8_e5m2", "f8e5m2", 1},
                                               {"Float8_e4m3fnuz", "", 1},
                                               {"Float8_e5m2fnuz", "", 1},
                                               {"Float8_e8m0fnu", "", 1},
                                               {"Float4_e2m1fn_x2", "", 1},
                                               {"c10::Float8_e4m3fnuz", "", 1},
                                               {"c10::Float8_e5m2fnuz", "", 1},
                                               {"c10::Float8_e8m0fnu", "", 1},
                                               {"c10::Float4_e2m1fn_x2", "", 1}}};

}  // namespace

std::string collective_named_by_torch(std::string_view name) {
  const auto* const found = std::ranges::find(kCollectives, name, &Name::first);
  return found == kCollectives.end() ? std::string() : std::string(found->second);
}

TorchType type_named_by_torch(std::string_view name) {
  const auto* const found = std::ranges::find(kTorchTypes, name, &Type::torch);
  return found == kTorchTypes.end()
             ? TorchType{.unknown = std::string(name)}
             : TorchType{.name = std::string(found->name), .bytes = found->bytes};
}

}  // namespace unisono::cli
