# Compiles every header alone, so that none leans on what its users included before it.
function(unisono_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/*.hpp
       ${PROJECT_SOURCE_DIR}/src/*.h)
  # Highway includes these once for each instruction set; they have no include guard by design.
  list(FILTER headers EXCLUDE REGEX "-inl\\.h$")
  set(sources)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "^(include|src)/" "" spelled ${header})
    string(MAKE_C_IDENTIFIER ${header} name)
    # C headers must also be C; all must be C++.
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${spelled}\"  // NOLINT\n#include \"${spelled}\"\n")
    list(APPEND sources ${source})
    if(header MATCHES "^include/.*\\.h$")
      set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.c)
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${spelled}\"\n#include \"${spelled}\"\n")
      list(APPEND sources ${source})
    endif()
  endforeach()
  add_library(unisono_headers OBJECT ${sources})
  target_link_libraries(unisono_headers PRIVATE unisono_internal)
  target_compile_options(unisono_headers PRIVATE -O0 -g0)
  unisono_warnings(unisono_headers)
endfunction()
