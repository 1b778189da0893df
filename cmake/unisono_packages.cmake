# `cpack -G DEB` in the build folder of the preset `release`: libunisono0, libunisono-dev,
# unisono-tools.
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

set(CPACK_COMPONENTS_ALL runtime development tools)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libunisono${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Collective communication library: shared library")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libunisono-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libunisono${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Collective communication library: headers, static library, CMake and pkg-config files")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME unisono-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "Collective communication: launcher, benchmark and schedule tools")
include(CPack)
