# The product: libunisono.so.0 and libunisono.a from the objects of all layers, and their
# installation. Sets unisono::unisono, the shared library unless BUILD_SHARED_LIBS is OFF.
include(GNUInstallDirs)

# The libraries that a layer may LINK: how a consumer of the static library finds them and links to
# them.
set(unisono_find_hwy::hwy "find_dependency(hwy)")
set(unisono_pc_hwy::hwy -lhwy)
set(unisono_find_fmt::fmt "find_dependency(fmt)")
set(unisono_pc_fmt::fmt -lfmt)
set(unisono_find_OpenSSL::Crypto "find_dependency(OpenSSL)")
set(unisono_pc_OpenSSL::Crypto -lcrypto)
set(unisono_find_nlohmann_json::nlohmann_json "")  # headers only

# Objects and outside libraries of every layer, into the caller's `objects` and `links`.
macro(unisono_collect_layers)
  set(objects)
  set(links)
  get_property(layers GLOBAL PROPERTY UNISONO_LAYERS)
  foreach(layer IN LISTS layers)
    list(APPEND objects $<TARGET_OBJECTS:unisono_${layer}>)
    get_target_property(layer_links unisono_${layer} UNISONO_LINKS)
    list(APPEND links ${layer_links})
  endforeach()
  list(REMOVE_DUPLICATES links)
endmacro()

function(unisono_add_library target type)
  unisono_collect_layers()
  add_library(${target} ${type} ${objects})
  target_link_libraries(${target} PRIVATE ${links} Threads::Threads)
  target_include_directories(${target}
                             INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME unisono LINKER_LANGUAGE CXX)
endfunction()

unisono_add_library(unisono_shared SHARED)
set(version_script ${PROJECT_SOURCE_DIR}/cmake/install/unisono.map)
target_link_options(unisono_shared PRIVATE -Wl,--version-script=${version_script} -Wl,--as-needed)
if(NOT UNISONO_SANITIZE)  # a sanitizer's run time comes with the program
  target_link_options(unisono_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(unisono_shared PROPERTIES
  EXPORT_NAME unisono INSTALL_RPATH $ORIGIN VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${version_script})

unisono_add_library(unisono_static STATIC)
set_target_properties(unisono_static PROPERTIES EXPORT_NAME static)

if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
  add_library(unisono::unisono ALIAS unisono_static)
else()
  add_library(unisono::unisono ALIAS unisono_shared)
endif()
# Another project builds the form that it links to, and nothing else of this one.
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(unisono_shared unisono_static unisono_internal
                        PROPERTIES EXCLUDE_FROM_ALL ON)
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/unisono)
install(TARGETS unisono_shared EXPORT unisonoTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
        NAMELINK_COMPONENT development)
install(TARGETS unisono_static EXPORT unisonoStaticTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(TARGET unisono_cuda)
  install(TARGETS unisono_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
          NAMELINK_SKIP)
endif()
install(DIRECTORY include/unisono DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
foreach(export IN ITEMS unisonoTargets unisonoStaticTargets)
  install(EXPORT ${export} NAMESPACE unisono:: DESTINATION ${package_dir} COMPONENT development)
endforeach()

unisono_collect_layers()
set(UNISONO_FIND_DEPENDENCIES)
set(UNISONO_PC_LIBS)
foreach(link IN LISTS links)
  if(NOT DEFINED unisono_find_${link})
    message(WARNING "unisono: say in cmake/unisono_library.cmake how a consumer finds ${link}")
  endif()
  if(unisono_find_${link})
    string(APPEND UNISONO_FIND_DEPENDENCIES "  ${unisono_find_${link}}\n")
  endif()
  list(APPEND UNISONO_PC_LIBS ${unisono_pc_${link}})
endforeach()
list(JOIN UNISONO_PC_LIBS " " UNISONO_PC_LIBS)
file(RELATIVE_PATH UNISONO_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" UNISONO_PC_PREFIX "${UNISONO_PC_PREFIX}")

include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/install/unisonoConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/unisonoConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/unisonoConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
configure_file(cmake/install/unisono.pc.in ${PROJECT_BINARY_DIR}/unisono.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/unisonoConfig.cmake
              ${PROJECT_BINARY_DIR}/unisonoConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/unisono.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
