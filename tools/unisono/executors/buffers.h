// Where the chunks of a collective lie in a GPU's buffers, as NCCL, MSCCL and MSCCL++ lay them.
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

// Where chunk `chunk` of the schedule lies in the input or output buffer of `rank`. REQUIRES: the
// rank has the chunk as input, or needs it as output.
int input_offset(const Schedule& shape, int rank, int chunk);
int output_offset(const Schedule& shape, int rank, int chunk);
// How many chunks lie in the buffer: 0 where the rank has none.
int input_chunks(const Schedule& shape, int rank);
int output_chunks(const Schedule& shape, int rank);

// How files call a buffer: i, o or s.
std::string_view letter_of(Buffer buffer);
std::optional<Buffer> buffer_called(std::string_view letter);

// What is exported is called "<collective>_<algorithm>": the algorithm, or else the whole name.
std::string algorithm_in(const std::string& name, Collective collective);

}  // namespace unisono::executors
