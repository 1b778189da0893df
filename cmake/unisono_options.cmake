# Flags for everything that is built here. They are set for this directory and below, so a project
# that takes unisono in with add_subdirectory() keeps its own.

set(UNISONO_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
option(UNISONO_FUZZ "Build the fuzzers (clang)" OFF)
option(UNISONO_HARDENING "Stack protector, fortified libc calls, read-only relocations" ON)

set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(UNISONO_DEVELOPER_MODE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(UNISONO_CCACHE ccache)
  if(UNISONO_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${UNISONO_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${UNISONO_CCACHE})
  endif()
endif()

if(UNISONO_SANITIZE)
  add_compile_options(-fsanitize=${UNISONO_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${UNISONO_SANITIZE})
elseif(UNISONO_HARDENING)
  include(CheckCXXCompilerFlag)
  foreach(flag -fstack-protector-strong -fcf-protection)
    string(MAKE_C_IDENTIFIER "UNISONO_HAS${flag}" has_flag)
    check_cxx_compiler_flag(${flag} ${has_flag})
    if(${has_flag})
      add_compile_options(${flag})
    endif()
  endforeach()
  # The C library fortifies only optimised code, and warns about the rest.
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                      $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro,-z,now)
endif()
