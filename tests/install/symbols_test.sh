#!/bin/bash
# Compares the names that a library exports with symbols/NAME.txt: symbols_test.sh NAME LIBRARY [--accept]
# A removed name breaks every program that uses it; a new name must be intended. Names that
# libunisono exports only to the other libraries (UNISONO_PRIVATE) are not part of the interface.
set -euo pipefail
golden=$(dirname "$0")/symbols/$1.txt
names=$(nm -D --defined-only --demangle "$2" | grep -v '@@UNISONO_PRIVATE' |
  sed -E 's/^[0-9a-f]+ . //; s/@@.*//' | grep -v '^UNISONO_' | LC_ALL=C sort -u)

ours='^(unisono::|unisono_|(typeinfo|typeinfo name|vtable) for unisono::)'
if grep -vE "$ours" <<<"$names"; then
  echo "these names are exported, but are not part of the interface"
  exit 1
fi
if [[ ${3:-} == --accept ]]; then
  echo "$names" >"$golden"
  exit
fi
diff "$golden" <(echo "$names") || {
  echo "exported names differ from tests/install/symbols/$1.txt (<: gone, >: new). If that is meant:"
  echo "  tests/install/symbols_test.sh $1 $2 --accept"
  exit 1
}
