#include "step/extent.h"

#include <algorithm>

#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::step {
namespace {

// Divides rows by sequence along data axes, by position along context axes, and along other axes in
// their order.
std::size_t rows_extent(const Step& step, const StepRanks& ranks, const Dim& dim,
                        const std::vector<std::string>& axes, int rank) {
  std::size_t sequences = dim.batch;
  int places = 1;
  int place = 0;
  for (const std::string& axis : axes) {
    if (has_name(step.data_axes, axis)) {
      sequences =
          parallel::shard_range(sequences, ranks.size(axis), ranks.coordinate(rank, axis)).count;
    } else if (has_name(step.context_axes, axis)) {
      place = place * ranks.size(axis) + ranks.coordinate(rank, axis);
      places *= ranks.size(axis);
    }
  }
  const std::size_t length = dim.size / dim.batch;
  std::size_t rows =
      sequences * (places == 1
                       ? length
                       : parallel::context_positions(step.order, length, places, place).size());
  for (const std::string& axis : axes) {
    if (!has_name(step.data_axes, axis) && !has_name(step.context_axes, axis)) {
      rows = parallel::shard_range(rows, ranks.size(axis), ranks.coordinate(rank, axis)).count;
    }
  }
  return rows;
}

std::size_t head_extent(const Step& step, const StepRanks& ranks, const Dim& dim,
                        const std::vector<std::string>& axes, int rank) {
  // If several axes cut heads, the last one is the outermost.
  int places = 1;
  int place = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    place = place * ranks.size(*axis) + ranks.coordinate(rank, *axis);
    places *= ranks.size(*axis);
  }
  const bool is_key_value = dim.cut == Cut::key_value_heads;
  const Dim& heads = is_key_value ? *step.find_dim(dim.like) : dim;
  std::size_t key_value = heads.size;
  for (const Dim& other : step.dims) {
    key_value =
        other.cut == Cut::key_value_heads && other.like == heads.name ? other.size : key_value;
  }
  const parallel::HeadShare share = parallel::head_share(heads.size, key_value, places, place);
  return is_key_value ? share.key_value.count : share.query.count;
}

}  // namespace

std::size_t extent(const Step& step, const StepRanks& ranks, const Dim& dim,
                   const Placements& placements, int rank) {
  std::vector<std::string> axes;
  for (const std::string& axis : ranks.wide_axes()) {
    if (placement_on(placements, axis) == shard(dim.name)) {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) {
    return dim.size;
  }
  switch (dim.cut) {
    case Cut::rows:
      return rows_extent(step, ranks, dim, axes, rank);
    case Cut::heads:
    case Cut::key_value_heads:
      return head_extent(step, ranks, dim, axes, rank);
    case Cut::even:
      break;
  }
  std::size_t size = dim.size;
  for (const std::string& axis : axes) {
    size = parallel::shard_range(size, ranks.size(axis), ranks.coordinate(rank, axis)).count;
  }
  return size;
}

double local_bytes(const Step& step, const StepRanks& ranks, const Tensor& tensor,
                   const Placements& placements, int rank) {
  double bytes = tensor.element_bytes;
  for (const std::string& name : tensor.dims) {
    bytes *= static_cast<double>(extent(step, ranks, *step.find_dim(name), placements, rank));
  }
  return bytes;
}

}  // namespace unisono::step
