#!/bin/bash
# The names that a libunisono.so exports are ours: symbols_test.sh LIBRARY
set -euo pipefail
names=$(nm -D --defined-only --demangle "$1" | sed -E 's/^[0-9a-f]+ . //; s/@@.*//' | LC_ALL=C sort -u)
ours='^(unisono::|unisono_|(typeinfo|typeinfo name|vtable) for unisono::|UNISONO_0\.1$)'
if grep -vE "$ours" <<<"$names"; then
  echo "these names are exported, but are no part of the interface"
  exit 1
fi
for name in 'unisono::Error::Error(' 'typeinfo for unisono::Error'; do
  grep -qF "$name" <<<"$names" || {
    echo "$name... is not exported"
    exit 1
  }
done
