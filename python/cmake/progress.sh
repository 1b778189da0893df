#!/bin/sh
# Runs one compiler and reports on the terminal how far the build is: pip shows nothing of a build
# without -v, and this one takes minutes.
#
#   progress.sh FOLDER COMMAND...
place=$1
shift
"$@"
status=$?
{
  echo >>"$place/compiled"
  printf '\runisono: %d files compiled, %d s ' "$(wc -l <"$place/compiled")" \
    "$(($(date +%s) - $(cat "$place/begun")))" >/dev/tty
} 2>/dev/null
exit $status
