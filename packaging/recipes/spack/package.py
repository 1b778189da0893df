# Spack: https://spack.readthedocs.io/en/latest/packaging_guide_creation.html
from spack.package import *


class Unisono(CMakePackage):
    """Collective communication that is run, predicted and seen from one schedule, for distributed
    training and inference of language models."""

    url = "@URL@"

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("tools", default=True, description="Build the command unisono")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("highway")
    depends_on("openssl@3:")
    depends_on("fmt@9:", when="+tools")
    depends_on("cli11", type="build", when="+tools")
    depends_on("nlohmann-json", type="build")
    depends_on("expat", when="+tools")
    depends_on("hwloc", when="+tools")
    depends_on("simdjson", when="+tools")
    depends_on("zlib-api", when="+tools")

    conflicts("platform=darwin", msg="unisono is for Linux")
    conflicts("platform=windows", msg="unisono is for Linux")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("UNISONO_DEVELOPER_MODE", "tools"),
            self.define("UNISONO_TESTS", False),
            self.define("UNISONO_BENCH", False),
            self.define("UNISONO_KERNELS", False),
        ]
