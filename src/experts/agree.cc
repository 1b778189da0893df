// Errors of arguments that all ranks tell in the same words.
#include <string>

#include "experts/state.h"

namespace unisono::parallel::detail {
namespace {

std::string sentence(const Claim& claim) {
  const std::string value = std::to_string(claim.value);
  switch (claim.fault) {
    case Fault::none:
      break;
    case Fault::experts:
      return value + " experts were given\npass at least one";
    case Fault::choices:
      return "k is " + value + "\npass at least 1";
    case Fault::place:
      return "the place of expert " + value +
             " is no rank of the group\ngive one rank for each expert, or none at all";
    case Fault::alignment:
      return "the alignment or capacity " + value +
             " cannot be\npass an alignment of at least 1 "
             "and a capacity of at least 0";
    case Fault::ids:
      return value + " choices are no multiple of k\npass tokens x k numbers, -1 for none";
    case Fault::expert:
      return "choice " + value +
             " names an expert that does not exist\npass numbers from 0 to "
             "experts - 1, or -1 for none";
    case Fault::other_routing:
      return "the routing was made by another exchange\npass one of this exchange's route()";
    case Fault::buffer:
      return "buffer " + value + " is null or its rows are too large\npass memory for all rows";
    case Fault::overlap:
      return "input and output of payload " + value + " overlap\npass memory of its own for each";
    case Fault::weights:
      return value + " weights were given\npass tokens x k of them, or none";
    case Fault::nan_weight:
      return "weight " + value + " is not a number\nlook at the router's softmax";
    case Fault::rank_major_weights:
      return "weights were given for rank_major rows\napply them where the experts compute";
    case Fault::dtype:
      return "the dtype cannot be summed\npass f32, bf16 or f16";
  }
  return {};
}

}  // namespace

std::vector<Claim> agree(Communicator& communicator, const char* call, const Claim& mine,
                         const char* differs) {
  std::vector<Claim> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)),
                          std::as_writable_bytes(std::span(all)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string who = std::string(call) + ": on rank " + std::to_string(rank) + " ";
    if (all[rank].fault != Fault::none) {
      throw Error(ErrorCode::usage, who + sentence(all[rank]));
    }
  }
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].same != all[0].same) {
      throw Error(ErrorCode::usage, std::string(call) + ": rank " + std::to_string(rank) + " has " +
                                        differs + " than rank 0\npass the same on all ranks");
    }
  }
  return all;
}

}  // namespace unisono::parallel::detail
