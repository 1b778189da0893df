// Gathers one value from every rank of a communicator.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono {

// Returns the values by rank. REQUIRES: Element is trivially copyable.
template <class Element>
std::vector<Element> gather(Communicator& comm, const Element& mine) {
  std::vector<Element> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace unisono
