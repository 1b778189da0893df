# A layer is one folder of src/ and one object library:
#   unisono_layer(name SOURCES... LINKS targets... TESTS x_test.cc...
#                 TEST_LABELS labels... TEST_LINKS targets...)
# src/layers.txt says which layers it may include. LINKS are libraries from outside. The TESTS become
# one program, <name>_test.
function(unisono_warnings target)
  if(UNISONO_DEVELOPER_MODE)
    # The standard library of g++ 12 uses what it has deprecated itself (std::stable_sort), and only
    # clang tells.
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
                           $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
    # With a sanitizer g++ sees uninitialised values in its own standard library.
    if(UNISONO_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
endfunction()

function(unisono_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;TESTS;LINKS;TEST_LABELS;TEST_LINKS" ${ARGN})
  add_library(unisono_${name} OBJECT ${LAYER_SOURCES})
  target_include_directories(unisono_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(unisono_${name} PUBLIC ${LAYER_LINKS} Threads::Threads)
  set_target_properties(unisono_${name} PROPERTIES UNISONO_LINKS "${LAYER_LINKS}")
  foreach(depend IN LISTS unisono_below_${name})
    target_link_libraries(unisono_${name} PUBLIC unisono_${depend})
  endforeach()
  unisono_warnings(unisono_${name})
  if(UNISONO_DEVELOPER_MODE AND LAYER_TESTS)
    unisono_test(${name}_test SOURCES ${LAYER_TESTS} LINKS ${LAYER_TEST_LINKS}
                 LABELS ${LAYER_TEST_LABELS})
  endif()
endfunction()

# A GoogleTest program over the whole library:
#   unisono_test(name SOURCES... [LINKS...] [ARGS...] [LONG args...] [LABELS...] [SERIAL])
# CTest's limit of 1500 s bounds a hang. SERIAL: nothing else runs beside it. LONG: the arguments of a
# longer form, long_<name>, which `make test-all` runs (ctest -C long).
# Labels:
#   threads   also run under ThreadSanitizer
#   slow      not run under AddressSanitizer: it would take minutes
#   no_asan   not run under AddressSanitizer: it cannot
#   computes  its own code is optimised: most of its time is spent there
function(unisono_test name)
  cmake_parse_arguments(TEST "SERIAL" "" "SOURCES;LINKS;ARGS;LONG;LABELS" ${ARGN})
  if(NOT UNISONO_TESTS)
    return()
  endif()
  add_executable(${name} ${TEST_SOURCES})
  if(CMAKE_UNITY_BUILD_BATCH_SIZE)  # tests of one layer often use the same local names
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  endif()
  if(UNISONO_SANITIZE)
    target_compile_definitions(${name} PRIVATE UNISONO_SANITIZED)
  endif()
  if(NOT UNISONO_SANITIZE MATCHES thread AND NOT computes IN_LIST TEST_LABELS)
    # A third to a half of the time to compile. The C library fortifies only what is optimised.
    target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
  endif()
  target_link_libraries(${name} PRIVATE unisono_internal GTest::gtest GTest::gtest_main ${TEST_LINKS})
  unisono_warnings(${name})
  add_test(NAME ${name} COMMAND ${name} ${TEST_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" RUN_SERIAL ${TEST_SERIAL})
  if(TEST_LONG AND NOT UNISONO_SANITIZE)
    add_test(NAME long_${name} COMMAND ${name} ${TEST_LONG} CONFIGURATIONS long)
    set_tests_properties(long_${name} PROPERTIES TIMEOUT 3600 LABELS long)
  endif()
  # Tests that a sanitizer does not run are not built either.
  if((UNISONO_SANITIZE MATCHES thread AND NOT threads IN_LIST TEST_LABELS)
     OR (UNISONO_SANITIZE MATCHES address
         AND (slow IN_LIST TEST_LABELS OR no_asan IN_LIST TEST_LABELS)))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# The same test again with its ranks on several hosts: each on one of its own, or two and two. Under a
# sanitizer the first runs in the long form alone: two and two go over the network as well.
function(unisono_test_on_hosts name)
  cmake_parse_arguments(TEST "NO_SANITIZERS" "" "ARGS" ${ARGN})
  if(NOT TARGET ${name} OR (UNISONO_SANITIZE AND TEST_NO_SANITIZERS))
    return()
  endif()
  get_test_property(${name} LABELS labels)
  foreach(world tcp mixed)
    set(when)
    if(UNISONO_SANITIZE AND world STREQUAL tcp)
      set(when CONFIGURATIONS long)
    endif()
    add_test(NAME ${name}_${world} COMMAND ${name} ${TEST_ARGS} ${when})
    set_tests_properties(
      ${name}_${world} PROPERTIES LABELS "${labels}" ENVIRONMENT UNISONO_TEST_WORLD=${world})
  endforeach()
endfunction()

# The same test again with each rank on a host of its own and messages over UCX: over UCX's TCP, or
# its shared memory (OVER, UCX_TLS without "self"). WITHOUT: a filter of tests to leave out.
function(unisono_test_on_ucx name)
  cmake_parse_arguments(TEST "" "WITHOUT" "ARGS;OVER" ${ARGN})
  if(NOT TARGET ${name} OR NOT UNISONO_UCX_INCLUDE OR UNISONO_SANITIZE)
    return()
  endif()
  foreach(over IN LISTS TEST_OVER)
    add_test(NAME ${name}_ucx_${over} COMMAND ${name} ${TEST_ARGS})
    set(environment UNISONO_TEST_WORLD=tcp UNISONO_NETWORK=ucx UCX_TLS=${over},self)
    if(TEST_WITHOUT)
      list(APPEND environment GTEST_FILTER=-${TEST_WITHOUT})
    endif()
    set_tests_properties(${name}_ucx_${over} PROPERTIES ENVIRONMENT "${environment}")
  endforeach()
endfunction()
