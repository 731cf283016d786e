# SPDX-License-Identifier: Apache-2.0
"""writers.py: each member of a table of src/correlate/ is written in one file.

The tables are the structs of its headers. A member is written by an assignment through a pointer, and where its
address, or it as an array, is passed or assigned as a pointer to what is not const. An array among variable arguments
is text to print. The address of a struct is passed to functions that write the members of that struct, which are looked
at there; a local copy is no table. What restores the tables from the write-ahead log, before there are events, is left
out. Not seen: a write through a pointer that is computed (`r->name + 1`), and one through the address of a member that
is a struct of another folder.
"""
import collections
import concurrent.futures
import json
import os
import re
import subprocess

import tree

FOLDER = "src/correlate/"
RESTORES = re.compile(FOLDER + r"(replay\w*|wal_reader)\.c")
CLANG = ["clang", "-std=gnu11", "-D_GNU_SOURCE", "-Isrc", "-Ibpf", "-fsyntax-only", "-Xclang", "-ast-dump=json"]
WITHIN = {"MemberExpr", "ArraySubscriptExpr", "ParenExpr", "ImplicitCastExpr", "CStyleCastExpr"}
CASTS = {"ImplicitCastExpr", "CStyleCastExpr"}
# What an address passes through on its way to the cast, the pointer or the parameter that gives it a type.
THROUGH = {"ParenExpr", "ConditionalOperator", "InitListExpr"}
KEEPS = CASTS | {"CallExpr", "VarDecl", "ReturnStmt"}
TO_CONST = re.compile(r"(const [^*]+|.*\*const )\*")
TO_STRUCT = re.compile(r"struct \w+ \*")


def is_address(node, above):
    """Whether an expression is an address, or an array that becomes one which is kept or passed on."""
    if node.get("castKind") == "ArrayToPointerDecay":
        return above["kind"] in KEEPS or above.get("opcode") == "="
    return node["kind"] == "UnaryOperator" and node["opcode"] == "&"


def writes(path, tables):
    """The (struct, member) that a file writes."""
    done = subprocess.run([*CLANG, path], cwd=tree.ROOT, stdout=subprocess.PIPE, check=True)
    members, fixed, found = {}, {}, set()

    def target(node):
        member = None
        while node["kind"] in WITHIN:
            member = member or members.get(node.get("referencedMemberDecl"))
            if node.get("isArrow"):
                found.update({member} - {None})
                return
            node = node["inner"][0]

    def visit(node, struct, above):
        kind, inner = node.setdefault("kind", ""), node.get("inner", [])
        if kind == "RecordDecl":
            struct = node.get("name", struct)
        elif kind == "FieldDecl" and struct in tables:
            members[node["id"]] = struct, node.get("name")
        elif kind == "CompoundAssignOperator" or node.get("opcode") in ("=", "++", "--"):
            target(inner[0])
        elif kind == "FunctionDecl":
            fixed[node["id"]] = sum(at["kind"] == "ParmVarDecl" for at in inner)
        elif kind == "CallExpr":
            called = inner[0]["inner"][0].get("referencedDecl", {}).get("id")
            for text in inner[1 + fixed.get(called, len(inner)):]:
                text.pop("castKind", None)
        elif is_address(node, above):
            of = (above if above["kind"] in CASTS else node)["type"]["qualType"]
            if not TO_CONST.fullmatch(of) and not TO_STRUCT.fullmatch(node["type"]["qualType"]):
                target(inner[0])
        for part in inner:
            visit(part, struct, above if kind in THROUGH else node)

    visit(json.loads(done.stdout), None, {"kind": ""})
    return found


def check(headers, files):
    """A sentence for each member that two files write, and how many members there are."""
    tables, by = set(), collections.defaultdict(list)
    for path in headers:
        with open(os.path.join(tree.ROOT, path), encoding="utf-8") as f:
            tables.update(re.findall(r"(?m)^struct (\w+) \{", f.read()))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, found in zip(files, pool.map(lambda path: writes(path, tables), files)):
            for member in found:
                by[member].append(path)
    return [f"{path}:1: writes {member} of struct {struct}, as {first} does"
            for (struct, member), (first, *others) in sorted(by.items()) for path in others], len(by)


if __name__ == "__main__":
    tree.need("clang", "clang")
    sentences, count = check(tree.files(FOLDER + "*.h"),
                             [path for path in tree.files(FOLDER + "*.c") if not RESTORES.match(path)])
    tree.verdict(sentences, f"{count} members")
