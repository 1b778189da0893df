#!/bin/bash
# One case of the installation tests: install_test.sh CASE SOURCE BUILD
#   install       installs BUILD, then moves the tree: it must not know where it was installed
#   tool          the installed program, its man pages and completion scripts
#   readme        the program and the commands of the README
#   find_package  static  libraries  c_project  pkg_config  subdirectory   build and run a user's project
# CXX, CC, LAUNCHER: the compilers, and ccache or an empty text.
set -euo pipefail
case=$1 source=$2 build=$3
here=$source/tests/install
work=$build/tests/install/work
prefix=$work/moved

fresh() { rm -rf "$1" && mkdir -p "$1"; }
configure() {
  cmake -G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$LAUNCHER" "$@"
}
libdir() { dirname "$(find "$prefix" -name libunisono.so)"; }

case $case in
  install)
    fresh "$work/first"  # not $work, because the case `subdirectory` may run at the same time
    rm -rf "$prefix"
    cmake --install "$build" --prefix "$work/first" >"$work/install.log"
    mv "$work/first" "$prefix"
    ;;
  tool)
    "$prefix/bin/unisono" --version
    # Every command has its man page, and every shell its completion.
    for command in $("$prefix/bin/unisono" help --json | sed -n 's/^ \{6\}"name": "\(.*\)",$/\1/p'); do
      grep -q '^.SH OPTIONS' "$prefix/share/man/man1/unisono-$command.1"
    done
    test -s "$prefix/share/man/man1/unisono.1"
    find "$prefix/share" -name '*unisono*' ! -path '*/man1/*' ! -path '*/share/unisono*' -size +0 | [[ $(wc -l) == 3 ]]
    test -s "$prefix/share/unisono/grafana/unisono.json" -a -s "$prefix/share/unisono/grafana/unisono-rules.yml"
    ;;
  find_package | static)
    form=shared
    [[ $case == static ]] && form=static
    fresh "$work/$case"
    configure -S "$here/cmake_project" -B "$work/$case" -DFORM=$form -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$work/$case"
    # The static form must run without the shared library.
    if [[ $form == static ]] && readelf -d "$work/$case/consumer" | grep -q libunisono; then
      echo "the static consumer needs libunisono.so"
      exit 1
    fi
    "$work/$case/consumer"
    ;;
  libraries)
    # A program for each library, shared and static; an unknown component is refused.
    for form in shared static; do
      fresh "$work/$case"
      configure -S "$here/libraries" -B "$work/$case" -DFORM=$form -DCMAKE_PREFIX_PATH="$prefix"
      cmake --build "$work/$case"
      for library in parallel device lab; do
        "$work/$case/$library"
        if [[ $form == static ]] && readelf -d "$work/$case/$library" | grep -q libunisono; then
          echo "the static program of $library needs a libunisono"
          exit 1
        fi
      done
    done
    if configure -S "$here/libraries" -B "$work/$case" -DFORM=shared -DMORE=other -DCMAKE_PREFIX_PATH="$prefix"; then
      echo "find_package(unisono COMPONENTS other) finds something"
      exit 1
    fi
    for library in parallel device lab; do
      PKG_CONFIG_LIBDIR=$(libdir)/pkgconfig pkg-config --libs "unisono_$library" |
        grep -q -e "-lunisono_$library"
    done
    ;;
  c_project)
    fresh "$work/$case"
    configure -S "$here/c_project" -B "$work/$case" -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build "$work/$case"
    "$work/$case/consumer"
    ;;
  pkg_config)
    fresh "$work/$case"
    # A program that links to the shared library must not need the packages that the library was
    # built with.
    PKG_CONFIG_LIBDIR=$(libdir)/pkgconfig
    export PKG_CONFIG_LIBDIR
    pkg-config --static --libs unisono | grep -q -e -lcrypto
    make -C "$work/$case" -f "$here/make_project/Makefile" VPATH="$here" CXX="$CXX"
    LD_LIBRARY_PATH=$(libdir) "$work/$case/consumer"
    ;;
  readme)
    # The program and the commands in the README, except for the build.
    fresh "$work/$case"
    cd "$work/$case"
    export HOME=$PWD
    sed -n '/^```cpp$/,/^```$/p' "$source/README.md" | sed '/^```/d' >app.cc
    for file in README.md README.zh.md; do
      sed -n '/^## \(Install\|安装\)$/,/^## Python/p' "$source/$file" | sed -n '/^```sh$/,/^```$/p' |
        sed '/^```/d; /^make release$/d' >"$file.sh"
    done
    cmp README.md.sh README.zh.md.sh
    sed "s#build/release#$build#; s#^g++ #$CXX #" README.md.sh >commands.sh
    grep -q '^cmake --install ' commands.sh
    bash -ex commands.sh | tee output.txt
    grep -q 'rank 3 of 4: 6$' output.txt
    ;;
  llm)
    # The example that requires only the installed library.
    fresh "$work/$case"
    configure -S "$source/examples/llm" -B "$work/$case" -DCMAKE_PREFIX_PATH="$prefix"
    if ! grep -q '^OPENBLAS_FOUND:INTERNAL=1' "$work/$case/CMakeCache.txt"; then
      echo "no OpenBLAS: examples/llm is left out"
      exit 0
    fi
    cmake --build "$work/$case"
    "$work/$case/llm" --model random --prompt hello --tokens 3
    ;;
  subdirectory)
    # Tests that another project can build the library, not how fast: not optimised, many files at a time, and
    # kernels for one kind of processor. `scripts/check --syntax` compiles each file alone.
    work=$build-$case
    configure -S "$here/subdirectory" -B "$work" -DUNISONO_SOURCE_DIR="$source" -DCMAKE_BUILD_TYPE=Debug \
      -DCMAKE_C_FLAGS_DEBUG="-O0 -g0" -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g0 -DHWY_COMPILE_ONLY_STATIC" \
      -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16
    cmake --build "$work" --target consumer
    "$work/consumer"
    if compgen -G "$work/unisono/tools*" >/dev/null; then
      echo "the tools were built in a project that only uses the library"
      exit 1
    fi
    ;;
  *)
    echo "install_test: no case '$case'" >&2
    exit 2
    ;;
esac
