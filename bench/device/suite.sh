#!/bin/bash
# Runs all checks of collectives in GPU memory that need a GPU:
#
#   bench/device/suite.sh prepare [FOLDER]    builds into FOLDER (build/device-suite) everything that the
#                                             machine with the GPU needs
#   bench/device/suite.sh run FOLDER [OUT]    runs the checks there; logs and a table go to OUT, or $OUT
#
#   --minutes N        starts no row that could end later than this (8)
#   --continue FILE    results.tsv of an earlier run; skips the rows that were right
#   --only STAGE       conformance, torch, graphs, failures or speed; may be repeated
#   --quick            few calls, small sizes and no time limit for failures, to try the script itself
#
# UNISONO_CUDA selects another driver. results.tsv has one line per row: stage, row, state (right,
# wrong, stopped, left out), seconds, result. The exit status is 1 if any row was wrong or stopped.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

fail() { echo "suite: $1" >&2 && exit 2; }

prepare() {
  local folder=${1:-$root/build/device-suite} build=$root/build/release wheel
  cd "$root" || exit
  cmake --preset release --log-level=WARNING >/dev/null &&
    cmake --build --preset release --target bench_device || exit
  rm -rf "$folder" && mkdir -p "$folder" || exit
  strip -o "$folder/bench_device" "$build/bench/bench_device" || exit
  # Copies the GPU kernels, if the release build has them.
  if grep -q '^build unisono_cuda:' "$build/build.ninja"; then
    cmake --build --preset release --target unisono_cuda || exit
    cp -L "$build/src/device/libunisono_cuda.so.0" "$folder" || exit
  else
    echo "suite: nvcc is not there: no kernels, so nothing can run on a GPU" >&2
  fi
  # Copies the wheels that scripts/wheels has built, which contain unisono.torch.
  for wheel in "$root"/build/wheels/unisono-*.whl; do
    [[ ! -f $wheel ]] || cp "$wheel" "$folder"
  done
  git -C "$root" rev-parse HEAD >"$folder/commit.txt"
  ls -l "$folder"
}

folder= out=${OUT:-} minutes=8 before= only=() quick= patience=1
case ${1:-} in
  prepare)
    prepare "${2:-}"
    exit
    ;;
  run) shift ;;
  -h | --help)
    sed -n '2,14s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  *) fail "say prepare or run; see --help" ;;
esac
while [[ $# -gt 0 ]]; do
  case $1 in
    --minutes | --continue | --only)
      [[ -n ${2:-} ]] || fail "$1 needs a value"
      case $1 in
        --minutes) minutes=$2 ;;
        --continue) before=$2 ;;
        --only) only+=("$2") ;;
      esac
      shift 2
      ;;
    --quick)
      quick=yes patience=20
      shift
      ;;
    -*) fail "no option $1; see --help" ;;
    *)
      if [[ -z $folder ]]; then folder=$1; else out=$1; fi
      shift
      ;;
  esac
done
[[ $minutes =~ ^[0-9]+$ ]] || fail "--minutes takes a whole number"
[[ -x $folder/bench_device ]] || fail "$folder/bench_device is not there: suite.sh prepare"
[[ -n $out ]] || fail "say where the logs go: suite.sh run FOLDER OUT"
[[ -z $before || -f $before ]] || fail "$before is not there"
folder=$(realpath "$folder")
mkdir -p "$out" || exit
results=$out/results.tsv
earlier=
[[ -z $before ]] || earlier=$(grep -P '\tright\t' "$before")
: >"$results"
export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} UNISONO_PROFILE=none
began=$SECONDS

note() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$results"; }

# row STAGE NAME LIMIT COMMAND...: runs a row; the last line of its output is the result.
row() {
  local stage=$1 name=$2 limit=$(($3 * patience)) known start state code
  shift 3
  if [[ ${#only[@]} -gt 0 && " ${only[*]} " != *" $stage "* ]]; then
    return
  fi
  known=$(grep -P "^$stage\t\Q$name\E\t" <<<"$earlier" | tail -1)
  if [[ -n $known ]]; then
    echo "$known" >>"$results"
    return
  fi
  if ((SECONDS - began + limit > minutes * 60)); then
    note "$stage" "$name" "left out" 0 "no time for its ${limit} s: go on with --continue"
    return
  fi
  start=$SECONDS
  echo "==== $name: $*" >>"$out/$stage.log"
  timeout --kill-after=5 "$limit" "$@" >"$out/row.txt" 2>&1
  code=$?
  cat "$out/row.txt" >>"$out/$stage.log"
  state=right
  [[ $code == 0 ]] || state=wrong
  [[ $code != 124 && $code != 137 ]] || state=stopped
  [[ $code != 77 ]] || state="left out"
  note "$stage" "$name" "$state" "$((SECONDS - start))" "$(grep . "$out/row.txt" | tail -1 | cut -c1-120)"
  rm -f "$out/row.txt"
}

shapes=3 every=1 within=100 largest=268435456
[[ -z $quick ]] || shapes=1 every=97 within=60000 largest=8192
bench=$folder/bench_device
for ranks in 2 4 8; do
  row conformance "$ranks threads" 60 "$bench" conformance --threads $ranks --shapes $shapes --every $every
done
for ranks in 2 4 8; do
  row conformance "$ranks processes" 90 "$bench" conformance --processes $ranks --shapes $shapes --every $every
done

# Tests PyTorch with the wheel for the installed Python. The wheel has an extension for each tested
# PyTorch.
torch() {
  local wanted wheel site=$out/site
  wanted=$(python3 -c 'import sys, torch, pytest
print(sys.implementation.cache_tag.replace("cpython-", "cp"))') ||
    { echo "python3 has no torch and pytest"; return 77; }
  wheel=$(compgen -G "$folder/unisono-*$wanted-*.whl" | head -1)
  [[ -n $wheel ]] || { echo "no wheel of unisono for $wanted: scripts/wheels"; return 77; }
  [[ -d $site ]] || python3 -m pip install --quiet --no-index --no-deps --target "$site" "$wheel" || return
  export PYTHONPATH=$site UNISONO_TEST_DEVICE=${UNISONO_TEST_DEVICE:-cuda}
  (cd "$root" && python3 -m pytest -q -x -W ignore -p no:cacheprovider -m "not slow" "$@")
}
export -f torch
export folder out root
for file in test_torch_devices test_torch_devices_streams test_torch_devices_groups test_torch_devices_failures; do
  row torch "$file" 75 bash -c 'torch "$@"' torch "python/tests/$file.py"
done

for ranks in 2 4; do
  row graphs "$ranks threads" 20 "$bench" graph --threads $ranks
done
row graphs "test_torch_devices_graphs" 60 bash -c 'torch "$@"' torch python/tests/test_torch_devices_graphs.py

for ranks in 2 4; do
  row failures "abort, $ranks threads" 15 "$bench" abort --threads $ranks --within $within
  row failures "abort, $ranks processes" 15 "$bench" abort --processes $ranks --within $within
  row failures "late, $ranks threads" 15 "$bench" late --threads $ranks --within $within
  row failures "late, $ranks processes" 15 "$bench" late --processes $ranks --within $within
  row failures "death, $ranks processes" 15 "$bench" death --processes $ranks --within $within
done

for ranks in 2 4 8; do
  row speed "$ranks threads" 40 "$bench" speed --threads $ranks --largest $largest
done
row speed "2 processes" 40 "$bench" speed --processes 2 --largest $((largest > 1048576 ? largest / 16 : largest))

rm -rf "$out/site" "$out/row.txt"
{
  printf '%s  commit %s\n\n' "$(date -u +%F)" "$(cat "$folder/commit.txt" 2>/dev/null)"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
  printf '\n'
  awk -F'\t' '{ printf "%-12s %-28s %-9s %4s s  %s\n", $1, $2, $3, $4, $5 }' "$results"
} | tee "$out/table.txt"
! grep -qP '\t(wrong|stopped)\t' "$results"
