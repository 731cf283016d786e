#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""musl.py BUILD: each file of src/ compiles with musl, the C library of the program that users get (dev/static).

BUILD is a configured build folder, whose compile_commands.json says which files there are, with which macros. The headers
of other libraries and of the kernel are this system's; Debian's musl is older than that of dev/static, so it lacks no less.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import tree

# What src/ includes of other libraries, below /usr/include or its folder of this architecture.
FOREIGN = ["asm", "asm-generic", "avro", "avro.h", "bpf", "curl", "event2", "gelf.h", "jansson.h", "jansson_config.h",
           "libdeflate.h", "libelf.h", "librdkafka", "libsmartcols", "linux", "openssl", "pcre2.h", "sys/capability.h", "sys/queue.h",
           "utarray.h", "uthash.h", "utlist.h", "uuid", "yaml.h", "zconf.h", "zlib.h", "zstd.h", "zstd_errors.h"]
KEPT = re.compile(r"-(D|I)\S|-std=")


def link_headers(folder):
    """Fills folder with links to FOREIGN. Two parts of a library's headers become one folder of links."""
    own = subprocess.run(["gcc", "-print-multiarch"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    for name in FOREIGN:
        places = [p for p in (f"/usr/include/{own}/{name}", f"/usr/include/{name}") if os.path.exists(p)]
        at = os.path.join(folder, name)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        if len(places) < 2:
            for place in places:
                os.symlink(place, at)
            continue
        os.mkdir(at)
        for place in places:
            for entry in os.listdir(place):
                if not os.path.lexists(f"{at}/{entry}"):
                    os.symlink(f"{place}/{entry}", f"{at}/{entry}")


def commands(build):
    """By file of src/: the options of its build that say what is compiled, not how."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    found = {}
    for entry in entries:
        path = os.path.relpath(entry["file"], tree.ROOT)
        if path.startswith("src/") and path not in found:
            found[path] = [word for word in shlex.split(entry["command"]) if KEPT.match(word)]
    return found


def look(path, options, headers):
    """The lines of the compiler for one file; none where it compiles."""
    command = ["musl-gcc", *options, "-Wall", "-Werror", "-fsyntax-only", "-idirafter", headers, path]
    done = subprocess.run(command, cwd=tree.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.splitlines() if done.returncode else []


def main():
    tree.need("musl-gcc", "musl-tools")
    found = commands(os.path.realpath(sys.argv[1]))
    missing = [f"{path}:1: the build does not compile it" for path in tree.files("src/*.c") if path not in found]
    with tempfile.TemporaryDirectory() as headers:
        link_headers(headers)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = pool.map(lambda item: look(*item, headers), found.items())
            wrong = [line for lines in said for line in lines]
    tree.verdict(missing + wrong, f"{len(found)} files of src/")


if __name__ == "__main__":
    main()
