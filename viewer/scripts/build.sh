#!/bin/bash
# Builds the page into tools/unisono/view/page.html, from where the command line embeds it.
#
#   viewer/scripts/build.sh            builds
#   viewer/scripts/build.sh --check    only compares: is what is committed what the sources build?
set -euo pipefail
cd "$(dirname "$0")/.."
page=../tools/unisono/view/page.html
npx --no-install vite build --logLevel warn
if [[ ${1:-} == --check ]]; then
  cmp ../build/viewer/index.html "$page" && exit
  echo "viewer: $page is not what viewer/ builds; run make viewer and commit it" >&2
  exit 1
fi
cp ../build/viewer/index.html "$page"
