# SPDX-License-Identifier: Apache-2.0
"""requirements.py FILE.in <pylock.toml: what uv resolved from FILE.in, as requirements with checksums.

A lock of uv has addresses of files, which are those of one index, and sources. Here are names alone: of the wheels that fit
this machine's Python, and of the source where there is no such wheel.
"""
import sys
import tomllib

lock = tomllib.load(sys.stdin.buffer)
print("# SPDX-License-Identifier: Apache-2.0")
print(f"# Made from {sys.argv[1]}: ./dev/venv --pin")
for package in lock["packages"]:
    files = package.get("wheels") or [package["sdist"]]
    hashes = sorted(file["hashes"]["sha256"] for file in files)
    print(" \\\n    ".join([f"{package['name']}=={package['version']}", *(f"--hash=sha256:{h}" for h in hashes)]))
