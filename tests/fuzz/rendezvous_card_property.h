// The property of any bytes received instead of a rank's card or the table of all cards.
#pragma once

#include <string>
#include <string_view>

#include "bootstrap/card.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

// Returns an empty text if the property holds, otherwise the failure: accepted bytes are read back
// equal, and refused bytes are reported as corrupt.
inline std::string rendezvous_card_property(std::string_view text) {
  try {
    const std::string card = comm::to_text(comm::parse_card(text));
    if (comm::to_text(comm::parse_card(card)) != card) {
      return "a card is not read back as it was written";
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) {
      return std::string("a card is refused as ") + error.what();
    }
  }
  for (const int size : {1, 2, 3}) {
    try {
      const auto cards = comm::parse_table(text, size);
      if (cards.size() != static_cast<std::size_t>(size)) {
        return "a table has " + std::to_string(cards.size()) + " cards in place of " +
               std::to_string(size);
      }
      if (comm::to_table(comm::parse_table(comm::to_table(cards), size)) != comm::to_table(cards)) {
        return "a table is not read back as it was written";
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt) {
        return std::string("a table is refused as ") + error.what();
      }
    }
  }
  return "";
}

}  // namespace unisono::fuzz
