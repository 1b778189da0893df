#!/bin/bash
# Compares the names that a libunisono.so exports with symbols.txt: symbols_test.sh LIBRARY [--accept]
# A name that goes away breaks every program that uses it; a new one must be meant.
set -euo pipefail
golden=$(dirname "$0")/symbols.txt
names=$(nm -D --defined-only --demangle "$1" | sed -E 's/^[0-9a-f]+ . //; s/@@.*//' |
  grep -v '^UNISONO_' | LC_ALL=C sort -u)

ours='^(unisono::|unisono_|(typeinfo|typeinfo name|vtable) for unisono::)'
if grep -vE "$ours" <<<"$names"; then
  echo "these names are exported, but are not part of the interface"
  exit 1
fi
if [[ ${2:-} == --accept ]]; then
  echo "$names" >"$golden"
  exit
fi
diff "$golden" <(echo "$names") || {
  echo "exported names differ from tests/install/symbols.txt (<: gone, >: new). If that is meant:"
  echo "  tests/install/symbols_test.sh $1 --accept"
  exit 1
}
