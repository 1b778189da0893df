// MSCCL programs as XML, the form that msccl-tools writes and MSCCL's executors read:
//
//   <algo name="ring" proto="Simple" nchannels="1" nchunksperloop="4" ngpus="4" coll="allreduce"
//         inplace="1" outofplace="1">
//     <gpu id="0" i_chunks="4" o_chunks="4" s_chunks="0">
//       <tb id="0" send="1" recv="3" chan="0">
//         <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1"
//               deps="-1" hasdep="0"/> ...
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "msccl/program.h"

namespace unisono::msccl {

// In the result, numbers, peers and offsets are in range, and both blocks of each channel exist.
// The position is "line N".
Parsed<MscclProgram> parse_xml(std::string_view text);

std::string to_xml(const MscclProgram& program);

}  // namespace unisono::msccl
