"""What pyproject.toml cannot say: the wheel carries sim/ and hls/, which rasna.simulator builds."""

from setuptools import find_namespace_packages, setup

SOURCES = {"rasna.simbuild.sources.sim": "sim", "rasna.simbuild.sources.hls": "hls"}

setup(
    packages=[*find_namespace_packages("python"), *SOURCES],
    package_dir={"": "python", **SOURCES},
    package_data={package: ["*.h", "*.cpp"] for package in SOURCES},
    # of the verilated RTL, which is built in the repository only
    exclude_package_data={"rasna.simbuild.sources.sim": ["rtl_*"]},
)
