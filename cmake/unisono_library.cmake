# The products: the libraries of src/layers.txt, each shared and static, and their installation.
#
#   libunisono           unisono_shared, unisono_static                    unisono::unisono
#   libunisono_parallel  unisono_parallel_shared, unisono_parallel_static  unisono::parallel
#
# and so on. unisono::NAME is the shared library unless BUILD_SHARED_LIBS is OFF.
include(GNUInstallDirs)
get_property(libraries GLOBAL PROPERTY UNISONO_LIBRARIES)

# The libraries that a layer may LINK: how a consumer of the static library finds them and links to
# them.
set(unisono_find_hwy::hwy "find_dependency(hwy)")
set(unisono_pc_hwy::hwy -lhwy)
set(unisono_find_fmt::fmt "find_dependency(fmt)")
set(unisono_pc_fmt::fmt -lfmt)
set(unisono_find_OpenSSL::Crypto "find_dependency(OpenSSL)")
set(unisono_pc_OpenSSL::Crypto -lcrypto)

# "unisono_parallel" of "libunisono_parallel", and "parallel"; "unisono" of "libunisono" is both.
function(unisono_names_of library name short)
  string(REGEX REPLACE "^lib" "" full ${library})
  set(${name} ${full} PARENT_SCOPE)
  string(REGEX REPLACE "^unisono_" "" full ${full})
  set(${short} ${full} PARENT_SCOPE)
endfunction()

# The layers whose objects a library has: its own, and copies of those that they need from libraries
# that it does not link to.
function(unisono_layers_of library result)
  get_property(own GLOBAL PROPERTY UNISONO_LAYERS_${library})
  get_property(needs GLOBAL PROPERTY UNISONO_NEEDS_${library})
  set(found ${own})
  set(todo ${own})
  while(todo)
    list(POP_FRONT todo layer)
    get_property(below GLOBAL PROPERTY UNISONO_BELOW_${layer})
    foreach(lower IN LISTS below)
      get_property(home GLOBAL PROPERTY UNISONO_LIBRARY_OF_${lower})
      if(NOT home IN_LIST needs AND NOT lower IN_LIST found)
        list(APPEND found ${lower})
        list(APPEND todo ${lower})
      endif()
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# The outside libraries of the layers of a library.
function(unisono_links_of library result)
  unisono_layers_of(${library} layers)
  set(links)
  foreach(layer IN LISTS layers)
    get_target_property(layer_links unisono_${layer} UNISONO_LINKS)
    list(APPEND links ${layer_links})
  endforeach()
  list(REMOVE_DUPLICATES links)
  set(${result} ${links} PARENT_SCOPE)
endfunction()

function(unisono_add_library library form type)
  unisono_names_of(${library} name short)
  unisono_layers_of(${library} layers)
  unisono_links_of(${library} links)
  get_property(needs GLOBAL PROPERTY UNISONO_NEEDS_${library})
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_OBJECTS:unisono_\\1>" OUTPUT_VARIABLE objects)
  list(TRANSFORM needs REPLACE "^lib(.+)" "\\1_${form}")
  set(target ${name}_${form})
  add_library(${target} ${type} ${objects})
  target_link_libraries(${target} PUBLIC ${needs} PRIVATE ${links} Threads::Threads)
  target_include_directories(${target}
                             INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX)
endfunction()

set(shared_targets)
set(static_targets)
foreach(library IN LISTS libraries)
  unisono_names_of(${library} name short)
  unisono_add_library(${library} shared SHARED)
  set(version_script ${PROJECT_SOURCE_DIR}/cmake/install/${name}.map)
  target_link_options(${name}_shared PRIVATE -Wl,--version-script=${version_script} -Wl,--as-needed)
  if(NOT UNISONO_SANITIZE)  # a sanitizer's run time comes with the program
    target_link_options(${name}_shared PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${name}_shared PROPERTIES
    EXPORT_NAME ${short} INSTALL_RPATH $ORIGIN VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${version_script})

  unisono_add_library(${library} static STATIC)
  set_target_properties(${name}_static PROPERTIES EXPORT_NAME ${short}_static)

  if(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
    add_library(unisono::${short} ALIAS ${name}_static)
  else()
    add_library(unisono::${short} ALIAS ${name}_shared)
  endif()
  list(APPEND shared_targets ${name}_shared)
  list(APPEND static_targets ${name}_static)
endforeach()
set_target_properties(unisono_static PROPERTIES EXPORT_NAME static)

# Another project builds the forms that it links to, and nothing else of this one.
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(${shared_targets} ${static_targets} unisono_internal
                        PROPERTIES EXCLUDE_FROM_ALL ON)
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/unisono)
file(RELATIVE_PATH UNISONO_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" UNISONO_PC_PREFIX "${UNISONO_PC_PREFIX}")
set(UNISONO_FIND_DEPENDENCIES)
foreach(library IN LISTS libraries)
  unisono_names_of(${library} UNISONO_PC_NAME short)
  install(TARGETS ${UNISONO_PC_NAME}_shared EXPORT ${UNISONO_PC_NAME}Targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${short}
          NAMELINK_COMPONENT development)
  install(TARGETS ${UNISONO_PC_NAME}_static EXPORT ${UNISONO_PC_NAME}StaticTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  foreach(export IN ITEMS ${UNISONO_PC_NAME}Targets ${UNISONO_PC_NAME}StaticTargets)
    install(EXPORT ${export} NAMESPACE unisono:: DESTINATION ${package_dir} COMPONENT development)
  endforeach()

  unisono_links_of(${library} links)
  set(UNISONO_PC_LIBS)
  foreach(link IN LISTS links)
    if(NOT DEFINED unisono_find_${link})
      message(WARNING "unisono: say in cmake/unisono_library.cmake how a consumer finds ${link}")
    endif()
    list(APPEND UNISONO_FIND_DEPENDENCIES "  ${unisono_find_${link}}\n")
    list(APPEND UNISONO_PC_LIBS ${unisono_pc_${link}})
  endforeach()
  list(JOIN UNISONO_PC_LIBS " " UNISONO_PC_LIBS)
  get_property(UNISONO_PC_REQUIRES GLOBAL PROPERTY UNISONO_NEEDS_${library})
  list(TRANSFORM UNISONO_PC_REQUIRES REPLACE "^lib" "")
  list(JOIN UNISONO_PC_REQUIRES " " UNISONO_PC_REQUIRES)
  configure_file(cmake/install/unisono.pc.in ${PROJECT_BINARY_DIR}/${UNISONO_PC_NAME}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${UNISONO_PC_NAME}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
list(REMOVE_DUPLICATES UNISONO_FIND_DEPENDENCIES)
list(JOIN UNISONO_FIND_DEPENDENCIES "" UNISONO_FIND_DEPENDENCIES)
if(TARGET unisono_cuda)
  install(TARGETS unisono_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT device
          NAMELINK_SKIP)
endif()
install(DIRECTORY include/unisono DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/install/unisonoConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/unisonoConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/unisonoConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/unisonoConfig.cmake
              ${PROJECT_BINARY_DIR}/unisonoConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)
