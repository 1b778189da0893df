// The positions of a collective's chunks in a GPU's buffers, as in NCCL, MSCCL and MSCCL++.
//
// Programs of executors name data by its place: a buffer of a GPU, and an offset in it, in chunks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace unisono::executors {

struct BufferPlace {
  Buffer buffer = Buffer::input;
  int offset = 0;  // in chunks

  friend bool operator==(const BufferPlace&, const BufferPlace&) = default;
};

// Returns the position of the schedule's chunk `chunk` in the input or output buffer of `rank`.
// REQUIRES: the rank has the chunk as input, or needs it as output.
int input_offset(const Schedule& shape, int rank, int chunk);
int output_offset(const Schedule& shape, int rank, int chunk);
// Returns the number of chunks in the buffer: 0 if the rank has none.
int input_chunks(const Schedule& shape, int rank);
int output_chunks(const Schedule& shape, int rank);

// Returns the letter of a buffer in files: i, o or s.
std::string_view letter_of(Buffer buffer);
std::optional<Buffer> buffer_called(std::string_view letter);

// Returns the algorithm in an exported name "<collective>_<algorithm>", or else the whole name.
std::string algorithm_in(const std::string& name, Collective collective);

}  // namespace unisono::executors
