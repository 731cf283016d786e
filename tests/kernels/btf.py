#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What sluice would do on a kernel, by the kernel's own types (BTF), without booting it.

tests/kernels/btf.py FILE…             each is a vmlinuz, an uncompressed kernel, BTF (/sys/kernel/btf/vmlinux), or a
                                       vmlinux.h (which needs pahole, of Debian's package dwarves);
                                       exit status 1: on one of them the agent could not start

Which hooks serve, which programs are loaded and which figures are null is asked of the agent's own code (offered.c).
Which relocations resolve is asked of libbpf, by `bpftool gen min_core_btf`, of the types that the agent gives it. A
relocation that does not resolve matters only where the verifier would come to it (bpf_code.py). Map types, program types
and helpers are in the kernel's own enums. What BTF cannot tell: whether the verifier accepts the programs, and what the kernel was booted with.
"""
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import bpf_code  # noqa: E402

BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build", "release"))
OBJECT = os.path.join(BUILD, "gen", "sluice.bpf.linked.o")
MAGIC = b"\x9f\xeb\x01"
TAKES = {"iter/task": "bpf_iter__task", "iter/bpf_map_elem": "bpf_iter__bpf_map_elem"}
NEEDED = (("bpf_prog_type", "BPF_PROG_TYPE_TRACING"), ("bpf_attach_type", "BPF_TRACE_RAW_TP"),
          ("bpf_attach_type", "BPF_TRACE_ITER"), ("bpf_cmd", "BPF_LINK_CREATE"), ("bpf_cmd", "BPF_ITER_CREATE"),
          ("bpf_cmd", "BPF_PROG_TEST_RUN"), ("bpf_cmd", "BPF_OBJ_PIN"))


def bpftool():
    return shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


# --- the types of a kernel ---

def unpacked(data):
    """The kernel within a vmlinuz: what one of its compressed streams unpacks to; the data itself if there is none."""
    for magic, unpack in ((b"\xfd7zXZ\0", lambda d: lzma.LZMADecompressor().decompress(d)),
                          (b"\x28\xb5\x2f\xfd", lambda d: subprocess.run(["zstd", "-dqc"], input=d, check=False,
                                                                         stdout=subprocess.PIPE,
                                                                         stderr=subprocess.DEVNULL).stdout),
                          (b"\x1f\x8b\x08", lambda d: zlib.decompressobj(31).decompress(d))):
        at = data.find(magic)
        while at >= 0:
            try:
                kernel = unpack(data[at:])
            except (lzma.LZMAError, zlib.error):
                kernel = b""
            if MAGIC in kernel:
                return kernel
            at = data.find(magic, at + 1)
    return data


def types_in(data):
    """The longest BTF in a kernel: the section .BTF, wherever it lies. None: there is none."""
    best, at = None, data.find(MAGIC)
    while at >= 0:
        if len(data) - at >= 24:
            head, type_at, type_len, text_at, text_len = struct.unpack_from("<IIIII", data, at + 4)
            end = at + head + text_at + text_len
            if 24 <= head <= 64 and type_at == 0 and text_at >= type_len > 0 and text_len > 0 and end <= len(data) and \
                    data[at + head + text_at] == 0 and data[end - 1] == 0 and (best is None or end - at > len(best)):
                best = data[at:end]
        at = data.find(MAGIC, at + 1)
    return best


def write_types_of_header(path, to):
    """The same of a vmlinux.h, as bpftool makes it of BTF: gcc has all its types in DWARF, which pahole makes BTF of.

    It names no functions. Helpers are those of its enum; functions that fentry is attached to are taken to exist, but
    for two that came together with members of structs."""
    with open(path) as f:
        text = f.read()
    functions = {"bpf_" + name for name in re.findall(r"\bBPF_FUNC_(\w+)", text)}
    functions |= {section.partition("/")[2] for section in bpf_code.Object(OBJECT).names if re.match("f(entry|exit)/", section)}
    if "point_of_no_return" not in text:
        functions.discard("begin_new_exec")
    if re.search(r"\bdirect_call;", text):        # of ftrace_ops
        functions.add("register_ftrace_direct")
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = os.path.join(folder, "types.c"), os.path.join(folder, "types.o")
        with open(source, "w") as f:
            f.write("#define BPF_NO_PRESERVE_ACCESS_INDEX\n" + text)
            f.write("".join(f"\nvoid {name}(void) {{}}" for name in sorted(functions)) + "\n")
        for command in (["gcc", "-g", "-gdwarf-4", "-ffreestanding", "-fno-builtin", "-w", "-c", source, "-o", compiled,
                         "-fno-eliminate-unused-debug-types"], ["pahole", "-J", f"--btf_encode_detached={to}", compiled]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
            if done.returncode != 0:
                raise ValueError(f"{path}: {command[0]}: {done.stdout.strip()[-400:]}")


def write_types(path, to):
    """Writes the BTF of a kernel's file to another file."""
    if path.endswith(".h"):
        write_types_of_header(path, to)
        return
    with open(path, "rb") as f:
        data = f.read()
    types = types_in(data if data[:3] == MAGIC else unpacked(data))
    if types is None:
        raise ValueError(f"{path} has no BTF: not a kernel, or one without CONFIG_DEBUG_INFO_BTF")
    with open(to, "wb") as f:
        f.write(types)


class Types:
    """All types of a BTF file, or of an object, by id and by name."""

    def __init__(self, path):
        done = subprocess.run([bpftool(), "-j", "btf", "dump", "file", path, "format", "raw"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, text=True, errors="replace")
        try:
            listed = json.loads(done.stdout)["types"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: {(done.stdout + done.stderr).strip()[-200:]}") from None
        self.by_id = {t["id"]: t for t in listed}
        self.by_name = {}
        for t in listed:
            self.by_name.setdefault((t["kind"], t["name"].split("___")[0]), []).append(t)

    def has(self, kind, name):
        return (kind, name) in self.by_name

    def values(self, enum):
        return {v["name"]: v["val"] for kind in ("ENUM", "ENUM64") for t in self.by_name.get((kind, enum), [])
                for v in t["values"]}

    def plain(self, type_id):
        t = self.by_id.get(type_id, {"kind": "VOID"})
        while t["kind"] in ("TYPEDEF", "CONST", "VOLATILE", "RESTRICT", "TYPE_TAG"):
            t = self.by_id.get(t["type_id"], {"kind": "VOID"})
        return t


def path_of(types, relocation):
    """A relocation in names: (kind and name of the type, [member or index, …])."""
    type_id, access, kind = relocation
    t = types.by_id[type_id]
    root = (t["kind"], t["name"])
    steps = [int(step) for step in access.split(":")]
    if kind in (bpf_code.ENUM_EXISTS, bpf_code.ENUM_VALUE):
        return root, [t["values"][steps[0]]["name"]]
    if kind in (bpf_code.TYPE_ID_LOCAL, bpf_code.TYPE_ID_TARGET, bpf_code.TYPE_EXISTS, bpf_code.TYPE_SIZE):
        return root, []
    t, names = types.plain(type_id), []
    for step in steps[1:]:
        if t["kind"] == "ARRAY":
            names.append(step)
            t = types.plain(t["type_id"])
        else:
            member = t["members"][step]
            if member["name"] not in ("", "(anon)"):
                names.append(member["name"])
            t = types.plain(member["type_id"])
    return root, names


def text_of(types, relocation):
    (kind, name), steps = path_of(types, relocation)
    return f"{kind.lower()} {name}" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)


def walks(types, t, steps):
    """True if the members can be followed from a type on, also through members that have no name."""
    if not steps:
        return True
    if t["kind"] == "ARRAY":
        return isinstance(steps[0], int) and (steps[0] < t["nr_elems"] or t["nr_elems"] == 0) and \
            walks(types, types.plain(t["type_id"]), steps[1:])
    if isinstance(steps[0], int):
        return False
    return any(walks(types, types.plain(m["type_id"]), steps[1:] if m["name"] == steps[0] else steps)
               for m in t.get("members", []) if m["name"] in (steps[0], "", "(anon)"))


def resolves(asked, found, kernel, relocation):
    """True if libbpf finds what a relocation of the object (asked) names. found: what it took of the kernel's types."""
    (kind, name), steps = path_of(asked, relocation)
    plain = name.split("___")[0]
    if relocation[2] == bpf_code.TYPE_ID_LOCAL:
        return True
    if relocation[2] in (bpf_code.ENUM_EXISTS, bpf_code.ENUM_VALUE):
        return steps[0] in kernel.values(plain)
    if not steps and relocation[2] in (bpf_code.TYPE_ID_TARGET, bpf_code.TYPE_EXISTS, bpf_code.TYPE_SIZE):
        return kernel.has(kind, plain)
    return any(walks(found, found.plain(t["id"]), steps) for t in found.by_name.get((kind, plain), []))


# --- what the agent would do there ---

def offered(btf, with_fentry=True):
    """(signals, programs, maps, what it lacks by the agent's own test), as offered.c prints them."""
    done = subprocess.run([os.path.join(BUILD, "tests", "kernels", "offered"), btf, *["--no-fentry"] * (not with_fentry)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return ([dict(zip(("name", "hook", "state", "fields", "detail"), row[1:])) for row in rows if row[0] == "signal"],
            {row[1]: row[2] for row in rows if row[0] == "program"}, {row[1]: row[2] for row in rows if row[0] == "map"},
            next((row[1] for row in rows if row[0] == "lacks"), None))


def write_types_for_libbpf(btf, to):
    """Writes the types that the agent gives to libbpf there."""
    with open(to, "wb") as f:
        done = subprocess.run([os.path.join(BUILD, "tests", "kernels", "offered"), btf, "--types"], stdout=f,
                              stderr=subprocess.PIPE, check=False, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())


def faults_of_programs(kernel, programs, maps):
    """Sentences on what the kernel lacks of what programs and maps are attached to and made of."""
    found = [f"enum {enum} has no {value}" for enum, value in NEEDED if value not in kernel.values(enum)]
    for name, section in programs.items():
        kind, _, target = section.partition("/")
        if kind == "tp_btf" and not kernel.has("TYPEDEF", f"btf_trace_{target}"):
            found.append(f"{name}: there is no tracepoint {target}")
        if kind in ("fentry", "fexit") and not kernel.has("FUNC", target):
            found.append(f"{name}: there is no function {target}")
        if kind == "iter" and not kernel.has("STRUCT", TAKES[section]):
            found.append(f"{name}: there is no iterator {target}")
        if kind == "syscall" and "BPF_PROG_TYPE_SYSCALL" not in kernel.values("bpf_prog_type"):
            found.append(f"{name}: enum bpf_prog_type has no BPF_PROG_TYPE_SYSCALL")
    types = kernel.values("bpf_map_type")
    found += [f"map {name}: there is no map type {kind}" for name, kind in maps.items()
              if f"BPF_MAP_TYPE_{kind.upper()}" not in types]
    return found


def has_fentry(kernel):
    """False if no program can be attached to a function: arm64 has no direct calls to them before 6.4.

    On other machines the function that makes such calls may be there without a type."""
    return not kernel.has("STRUCT", "user_pt_regs") or kernel.has("FUNC", "register_ftrace_direct")


def machine_of(path):
    """x86_64 or aarch64, by the types in a file."""
    with tempfile.NamedTemporaryFile(suffix=".btf") as f:
        write_types(path, f.name)
        return "aarch64" if Types(f.name).has("STRUCT", "user_pt_regs") else "x86_64"


def check(btf, path_of_object=None, with_fentry=True):
    """What the agent would do on the kernel with this BTF: {signals, programs, unresolved, faults, lacks}."""
    path_of_object = path_of_object or OBJECT
    code = bpf_code.Object(path_of_object)
    asked, kernel = Types(path_of_object), Types(btf)
    with tempfile.TemporaryDirectory() as folder:
        minimal, given = os.path.join(folder, "minimal.btf"), os.path.join(folder, "given.btf")
        write_types_for_libbpf(btf, given)
        done = subprocess.run([bpftool(), "gen", "min_core_btf", given, minimal, path_of_object], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, text=True)
        if done.returncode != 0:
            raise ValueError(f"bpftool gen min_core_btf {btf}: {done.stdout.strip()}")
        found = Types(minimal)
    signals, programs, maps, lacks = offered(btf, with_fentry)
    answers = {}

    def exists(relocation):
        if relocation not in answers:
            answers[relocation] = resolves(asked, found, kernel, relocation)
        return answers[relocation]

    relocations, helpers = code.reached(programs, exists)
    faults = faults_of_programs(kernel, programs, maps)
    missing = {}
    for function, relocation in relocations:
        if relocation[2] not in bpf_code.ASK_EXISTENCE and not exists(relocation):
            missing.setdefault(text_of(asked, relocation), set()).add(function)
    faults += [f"{name} does not exist, and {', '.join(sorted(functions))} read it"
               for name, functions in sorted(missing.items())]
    names = {value: name for name, value in kernel.values("bpf_func_id").items() if name != "__BPF_FUNC_MAX_ID"}
    calls = {}
    for function, number in helpers:
        if number not in names:
            calls.setdefault(number, set()).add(function)
    faults += [f"there is no helper {number}, which {', '.join(sorted(functions))} call"
               for number, functions in sorted(calls.items())]
    for of_function in code.relocations.values():
        for relocation in of_function.values():
            exists(relocation)
    return {"signals": signals, "programs": programs, "faults": faults, "lacks": lacks,
            "unresolved": sorted({text_of(asked, r) for r, there in answers.items() if not there})}


def printed(result):
    lines = [f"  {s['name']:15} {s['state']:9} {s['hook'] if s['state'] in ('exact', 'fallback') else s['fields'] + ': ' + s['detail']}" for s in result["signals"]]
    lines.append("  not in this kernel: " + (", ".join(result["unresolved"]) or "nothing"))
    return lines + ["  FAULT " + fault for fault in result["faults"]]


def main(argv):
    if not argv or argv[0].startswith("-"):
        sys.exit(__doc__)
    failed = False
    for path in argv:
        with tempfile.NamedTemporaryFile(suffix=".btf") as btf:
            write_types(path, btf.name)
            result = check(btf.name, with_fentry=has_fentry(Types(btf.name)))
        failed |= bool(result["faults"])
        print("\n".join([path, *printed(result)]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
