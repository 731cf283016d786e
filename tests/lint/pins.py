# SPDX-License-Identifier: Apache-2.0
"""pins.py: what builds and tests fetch is named by its checksum, so that no server and no network can replace it.

- A file of Python requirements has a version and the checksums of each package, and every version that its .in asks for.
- An image of a container has a digest; an action of the forge is a commit.
- What installs Python packages demands their checksums. Whatever else fetches has a sha256 to compare with in the same file.

Debian's packages are not looked at: apt compares them with the signature of the archive. Nor are Maven's own plugins, which
it compares with the checksums of its repository (dev/jars).
"""
import os
import re

import tree

# Images without a digest, and why.
NO_DIGEST = {
    "apicurio/apicurio-registry:3.0.9": "still to be looked up; until then its publisher decides what the tag is",
}
SKIPPED = ("tests/fuzz/", "tests/fixtures/", "tests/unit/", "tests/lint/", "docs/", "src/", "bpf/", "config/")

REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?\s*(?:[=~!<>]=|[<>]|@)\s*\S")
PINNED = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.!+]+)(?: --hash=sha256:[0-9a-f]{64})+$")
WANTED = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==([\w.!+]+)$")
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
COMMIT = re.compile(r"@[0-9a-f]{40}$")
INSTALLS = re.compile(r"\bpip3? (?:-\S+ )*(?:install|sync|download)\b")
# In a program words are an item each; a sentence that tells people what to install is no call.
CALLS = re.compile(r"""["']pip3?["'],(?: *["']-[^"']*["'],)* *["'](?:install|sync|download)["']""")
DEMANDS = re.compile(r"--require-(?:build-)?hashes\b")
FETCHES = re.compile(r"\b(?:curl|wget)\s[^|;&]*\bhttps?://(?!localhost|127\.)|\bmvn\s|MAVEN_GET\b|"
                     r"\bapt-get\s[^|;&]*\bsource\b|\bgit clone\b|\b(?:npm|cargo|go) (?:install|get|ci)\b|\burlretrieve\(|"
                     r"\bFetchContent_Declare\b|\bExternalProject_Add\b|\bfile\(DOWNLOAD\b|^ADD\s+https?://")


def canonical(name):
    """PyPI's own rule: names that differ only in that are one."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(text):
    """(number, line) without comments, with a line that continues as one."""
    number, joined = 0, ""
    for n, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        number = n if joined == "" else number
        joined += re.sub(r"\s#.*", "", line)
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip() + " "
        else:
            yield number, " ".join(joined.split())
            joined = ""


def requirements(path, text, asked):
    """`asked` is the text of the .in beside it, or None."""
    pinned = {}
    for number, line in lines(text):
        found = PINNED.match(line)
        if found:
            pinned[canonical(found[1])] = found[2]
        elif line:
            yield f"{path}:{number}: {line.split(' ')[0]} has no version and checksum: list it in a .in, then ./dev/venv --pin"
    if asked is None:
        return
    for _, line in lines(asked):
        found = WANTED.match(line)
        if found and pinned.get(canonical(found[1])) != found[2]:
            yield f"{path}: not made from its .in, which asks for {line}: ./dev/venv --pin"


def has_digest(image):
    return DIGEST.search(image) or image in NO_DIGEST


def dockerfile(path, text):
    """FROM and COPY --from: stages of the file, arguments, whose default counts, or images with a digest."""
    stages, arguments = {"scratch"}, {}
    for number, line in lines(text):
        words = [word for word in line.split() if not word.startswith("--platform")]
        if words[:1] == ["ARG"] and "=" in line:
            name, _, value = words[1].partition("=")
            arguments[name] = value
        sources = re.findall(r"--from=(\S+)", line)
        if words[:1] == ["FROM"]:
            sources.append(words[1])
            if len(words) > 3:
                stages.add(words[3])
        for source in sources:
            argument = re.fullmatch(r"\$\{?(\w+)\}?", source)
            image = arguments.get(argument[1], "") if argument else source
            # An argument may name a stage that comes later in the file.
            if image not in stages and not has_digest(image) and not re.search(rf"(?mi)^FROM .* AS {re.escape(image)}$", text):
                yield f"{path}:{number}: the image {image or source} has no digest: write NAME:TAG@sha256:…"


def yaml_file(path, text):
    """Images of services and jobs; that of a service with `build` is made here. Actions."""
    for number, line in lines(text):
        found = re.match(r"(?:- )?(image|uses): [\"']?([^\"'\s]+)", line)
        if not found:
            continue
        kind, name = found.groups()
        if kind == "uses" and not name.startswith("./") and not COMMIT.search(name):
            yield f"{path}:{number}: the action {name} is not a commit: write NAME@COMMIT # TAG"
        if path.startswith("ops/kubernetes/") and name == "registry.invalid/sluice":
            continue  # this project's own, whose digest an overlay sets
        if kind == "image" and not has_digest(name) and not re.search(rf"image: {re.escape(name)}\n +build:", text):
            yield f"{path}:{number}: the image {name} has no digest: write NAME:TAG@sha256:…"


def fetching(path, text):
    """Commands of scripts and programs."""
    installs = CALLS if path.endswith(".py") else INSTALLS
    for number, line in lines(text):
        if installs.search(line) and not DEMANDS.search(line):
            yield f"{path}:{number}: fetches Python packages without --require-hashes"
        if FETCHES.search(line) and "sha256" not in text:
            yield f"{path}:{number}: fetches what it compares with no sha256"


def is_program(path, text):
    return text.startswith("#!") or path.endswith((".py", ".sh", ".yml", ".yaml", ".cmake", "Dockerfile", "CMakeLists.txt"))


def check(texts):
    """Sentences on {path: text}."""
    wrong = []
    for path, text in sorted(texts.items()):
        name = os.path.basename(path)
        if path.endswith(".txt") and name != "CMakeLists.txt":
            asked = texts.get(path[:-4] + ".in")
            if asked is not None or any(REQUIREMENT.match(line) or line.startswith("-r ") for _, line in lines(text)):
                wrong += requirements(path, text, asked)
        if path.endswith(".in") and path[:-3] + ".txt" not in texts and any(REQUIREMENT.match(line) for _, line in lines(text)):
            wrong.append(f"{path}: is not pinned: ./dev/venv --pin")
        if name.endswith("Dockerfile") or name.startswith("Dockerfile"):
            wrong += dockerfile(path, text)
        if name.endswith((".yml", ".yaml")):
            wrong += yaml_file(path, text)
        if is_program(path, text):
            wrong += fetching(path, text)
    return wrong


def read():
    texts = {}
    for path in tree.files():
        if not path.startswith(SKIPPED):
            with open(os.path.join(tree.ROOT, path), errors="replace") as f:
                texts[path] = f.read()
    return texts


if __name__ == "__main__":
    found = read()
    tree.verdict(check(found), f"{len(found)} files that may fetch")
