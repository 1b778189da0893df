# `cpack -G DEB` in the build folder of the preset `release`: libunisono0, libunisono-parallel0,
# libunisono-device0, libunisono-lab0, libunisono-dev, unisono-tools.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME unisono)
set(CPACK_PACKAGE_VENDOR unisono)
set(CPACK_PACKAGE_CONTACT "unisono maintainers <maintainers@unisono.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

set(major ${PROJECT_VERSION_MAJOR})
set(same_version "(= ${PROJECT_VERSION})")
set(CPACK_COMPONENTS_ALL unisono parallel device lab development tools)
set(CPACK_DEBIAN_UNISONO_PACKAGE_NAME libunisono${major})
set(CPACK_DEBIAN_UNISONO_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_UNISONO_DESCRIPTION "Collective communication library: shared library")
set(CPACK_DEBIAN_PARALLEL_PACKAGE_NAME libunisono-parallel${major})
set(CPACK_DEBIAN_PARALLEL_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PARALLEL_PACKAGE_DEPENDS "libunisono${major} ${same_version}")
set(CPACK_COMPONENT_PARALLEL_DESCRIPTION
    "Collective communication library: models laid over ranks, experts, pipelines")
set(CPACK_DEBIAN_DEVICE_PACKAGE_NAME libunisono-device${major})
set(CPACK_DEBIAN_DEVICE_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVICE_PACKAGE_DEPENDS "libunisono${major} ${same_version}")
set(CPACK_COMPONENT_DEVICE_DESCRIPTION
    "Collective communication library: collectives in the memory of NVIDIA GPUs")
set(CPACK_DEBIAN_LAB_PACKAGE_NAME libunisono-lab${major})
set(CPACK_DEBIAN_LAB_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LAB_DESCRIPTION
    "Collective communication library: predictions for described machines and models")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libunisono-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
string(JOIN ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
       "libunisono${major} ${same_version}" "libunisono-parallel${major} ${same_version}"
       "libunisono-device${major} ${same_version}" "libunisono-lab${major} ${same_version}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Collective communication library: headers, static libraries, CMake and pkg-config files")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME unisono-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "Collective communication: launcher, benchmark and schedule tools")
include(CPack)
