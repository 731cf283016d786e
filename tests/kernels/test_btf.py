# SPDX-License-Identifier: Apache-2.0
"""What btf.py says of kernels that lack one thing each: the running kernel's types, with a name in them changed."""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import bpf_code  # noqa: E402
import btf  # noqa: E402
import verdict  # noqa: E402

RUNNING = "/sys/kernel/btf/vmlinux"


def instruction(operation, to=0, source=0, offset=0, immediate=0):
    return operation, to | source << 4, offset, immediate


MOVE, JUMP_IF_0, EXIT, LOAD = 0xb7, 0x15, 0x95, 0x61


class Reach(unittest.TestCase):
    """A program of three: r1 = 0 or 1; if r1 == 0 goto the end; the one in question; exit."""

    def reached(self, *code, constants=None):
        at = {8 * i: c for i, c in enumerate(code)}
        return [offset // 8 for offset, _ in bpf_code.reachable(at, {8 * i: v for i, v in (constants or {}).items()})]

    def test_what_is_behind_a_test_that_fails_is_not_reached(self):
        code = (instruction(MOVE, to=1, immediate=1), instruction(JUMP_IF_0, to=1, offset=1), instruction(MOVE),
                instruction(EXIT))
        self.assertEqual([0, 1, 2, 3], self.reached(*code))
        self.assertEqual([0, 1, 3], self.reached(*code, constants={0: 0}))

    def test_both_ways_are_where_nothing_is_known(self):
        code = (instruction(LOAD, to=1, source=2), instruction(JUMP_IF_0, to=1, offset=1), instruction(MOVE),
                instruction(EXIT))
        self.assertEqual([0, 1, 2, 3], self.reached(*code))

    def test_a_constant_of_one_way_alone_is_none_where_they_meet(self):
        code = (instruction(LOAD, to=2, source=3), instruction(MOVE, to=1, immediate=0),
                instruction(JUMP_IF_0, to=2, offset=1), instruction(MOVE, to=1, immediate=1),
                instruction(JUMP_IF_0, to=1, offset=1), instruction(MOVE), instruction(EXIT))
        self.assertEqual([0, 1, 2, 3, 4, 5, 6], self.reached(*code))

    def test_a_call_forgets_what_it_may_change(self):
        code = (instruction(MOVE, to=1, immediate=0), instruction(0x85, immediate=14),
                instruction(JUMP_IF_0, to=1, offset=1), instruction(MOVE), instruction(EXIT))
        self.assertEqual([0, 1, 2, 3, 4], self.reached(*code))


class Kernels(unittest.TestCase):
    def setUp(self):
        with open(RUNNING, "rb") as f:
            self.types = f.read()

    def check(self, *names, with_fentry=True):
        """The result for the running kernel's types in which these names have another end."""
        types = self.types
        for name in names:
            old = b"\0" + name.encode() + b"\0"
            self.assertIn(old, types, f"this kernel has no {name} itself")
            types = types.replace(old, b"\0" + name.encode()[:-1] + b"~\0")
        with tempfile.NamedTemporaryFile(suffix=".btf") as f:
            f.write(types)
            f.flush()
            return btf.check(f.name, with_fentry=with_fentry)

    def state(self, result, signal):
        return next(s["state"] for s in result["signals"] if s["name"] == signal)

    def test_the_running_kernel_lacks_nothing(self):
        result = self.check()
        self.assertEqual([], result["faults"])
        self.assertIsNone(result["lacks"])
        self.assertIn("on_fork" if "on_fork" in result["programs"] else "on_fork_7", result["programs"])

    def test_a_field_that_every_program_reads(self):
        result = self.check("group_leader")
        self.assertEqual(1, len(result["faults"]), result["faults"])
        self.assertTrue(result["faults"][0].startswith("struct task_struct.group_leader does not exist, and "))
        self.assertIn("struct task_struct.group_leader", result["unresolved"])

    def test_a_kernel_that_the_agent_itself_refuses(self):
        for member, other in (("start_boottime", "task_struct.start_boottime"),
                              ("parent_exec_id", "task_struct___rhel_8.task_struct_rh")):
            with self.subTest(member):
                result = self.check(member)
                self.assertEqual(member, result["lacks"])
                self.assertTrue(any(f"{other} does not exist" in f for f in result["faults"]), result["faults"])

    def test_members_that_older_kernels_have_elsewhere(self):
        """As in Red Hat's 4.18."""
        text = subprocess.run([btf.bpftool(), "btf", "dump", "file", RUNNING, "format", "c"], stdout=subprocess.PIPE,
                              check=True, text=True).stdout
        ids = "\tu64 parent_exec_id;\n\tu64 self_exec_id;\n"
        lock = "typedef struct {\n\tseqcount_spinlock_t seqcount;\n"
        changes = ((ids, "\tstruct task_struct_rh *task_struct_rh;\n"), ("\tu64 start_boottime;\n", "\tu64 real_start_time;\n"),
                   (lock, lock.replace("seqcount_spinlock_t", "seqcount_t")),
                   ("struct task_struct {\n", f"struct task_struct_rh {{\n{ids}}};\n\nstruct task_struct {{\n"))
        for old, _ in changes:
            self.assertEqual(1, text.count(old), old)
        with tempfile.TemporaryDirectory() as folder:
            header, types = os.path.join(folder, "vmlinux.h"), os.path.join(folder, "btf")
            for old, new in changes:
                text = text.replace(old, new)
            with open(header, "w") as f:
                f.write(text)
            btf.write_types(header, types)
            result = btf.check(types, with_fentry=False)
        self.assertEqual(([], None), (result["faults"], result["lacks"]))
        self.assertIn("struct task_struct.self_exec_id", result["unresolved"])

    def test_a_field_within_a_field(self):
        result = self.check("nr_migrations")
        self.assertEqual(["struct task_struct.se.nr_migrations does not exist"],
                         [f.split(", and ")[0] for f in result["faults"]])

    def test_a_struct(self):
        result = self.check("nsproxy")         # the struct and the field that points to it
        self.assertTrue(any("nsproxy" in f for f in result["faults"]), result["faults"])

    def test_what_is_optional_is_no_fault(self):
        result = self.check("cfs_rq")
        self.assertEqual([], result["faults"])
        self.assertEqual("fallback", self.state(result, "cpu_split"))
        self.assertTrue(any(".cfs_rq" in f for f in result["unresolved"]), result["unresolved"])

    def test_a_controller_that_is_not_built(self):
        result = self.check("memory_cgrp_id")
        self.assertEqual([], result["faults"])
        self.assertIn("enum cgroup_subsys_id.memory_cgrp_id", result["unresolved"])

    def test_a_tracepoint_that_every_load_needs(self):
        result = self.check("btf_trace_sched_process_fork")
        self.assertTrue(result["faults"])
        self.assertTrue(all("there is no tracepoint sched_process_fork" in f for f in result["faults"]), result["faults"])

    def test_a_tracepoint_that_something_else_can_replace(self):
        result = self.check("btf_trace_sock_send_length")
        self.assertEqual([], result["faults"])
        self.assertEqual("fallback", self.state(result, "network"))
        self.assertIn("on_inet_sendmsg", result["programs"])
        result = self.check("btf_trace_sock_send_length", with_fentry=False)
        self.assertEqual([], result["faults"])
        self.assertEqual("missing", self.state(result, "network"))
        self.assertNotIn("on_inet_sendmsg", result["programs"])

    def test_a_map_type_a_command_and_a_helper(self):
        for name, said in (("BPF_MAP_TYPE_RINGBUF", "map ring: there is no map type ringbuf"),
                           ("BPF_ITER_CREATE", "enum bpf_cmd has no BPF_ITER_CREATE"),
                           ("bpf_iter__task", "there is no iterator task")):
            with self.subTest(name):
                self.assertTrue(any(said in f for f in self.check(name)["faults"]))

    def test_a_kernel_from_before_a_helper(self):
        with tempfile.NamedTemporaryFile(suffix=".btf") as f:
            f.write(self.types)
            f.flush()
            asked = btf.Types.values

            def fewer(types, enum):
                values = asked(types, enum)
                return {name: v for name, v in values.items() if v < 130} if enum == "bpf_func_id" else values
            btf.Types.values = fewer
            try:
                faults = btf.check(f.name)["faults"]
            finally:
                btf.Types.values = asked
        self.assertTrue(any(f.startswith("there is no helper 13") for f in faults), faults)


class Files(unittest.TestCase):
    def test_types_are_found_wherever_they_lie(self):
        types = struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, 12, 12, 5) + b"\0" * 12 + b"\0int\0"
        self.assertEqual(types, btf.types_in(types))
        self.assertEqual(types, btf.types_in(b"MZ" + b"\x9f\xeb\x01" + b"kernel" * 9 + types + b"more"))
        for cut in range(len(types)):
            self.assertIsNone(btf.types_in(types[:cut]), cut)

    def test_a_file_that_is_no_kernel(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"\x1f\x8b\x08 not one" * 100)
            f.flush()
            with self.assertRaisesRegex(ValueError, "has no BTF"):
                btf.write_types(f.name, f.name + ".btf")

    def test_a_damaged_one(self):
        with open(RUNNING, "rb") as f:
            types = f.read()
        with tempfile.NamedTemporaryFile(suffix=".btf") as f:
            f.write(types[:24] + b"\xff" * 4000 + types[4024:])
            f.flush()
            with self.assertRaises(ValueError):
                btf.check(f.name)


if __name__ == "__main__":
    sys.exit(verdict.main())
