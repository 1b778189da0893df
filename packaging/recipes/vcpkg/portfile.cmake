# vcpkg: the libraries, without the command. https://learn.microsoft.com/vcpkg/maintainers/functions
vcpkg_download_distfile(archive
  URLS "@URL@"
  FILENAME unisono-@VERSION@.tar.gz
  SHA512 @SHA512@)
vcpkg_extract_source_archive(source ARCHIVE "${archive}")
vcpkg_cmake_configure(SOURCE_PATH "${source}"
                      OPTIONS -DUNISONO_DEVELOPER_MODE=OFF -DUNISONO_KERNELS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/unisono)
vcpkg_fixup_pkgconfig()
# Each library is built in both forms; a triplet wants one.
if(VCPKG_LIBRARY_LINKAGE STREQUAL dynamic)
  file(GLOB others "${CURRENT_PACKAGES_DIR}/lib/*.a" "${CURRENT_PACKAGES_DIR}/debug/lib/*.a")
else()
  file(GLOB others "${CURRENT_PACKAGES_DIR}/lib/*.so*" "${CURRENT_PACKAGES_DIR}/debug/lib/*.so*")
endif()
file(REMOVE ${others})
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
