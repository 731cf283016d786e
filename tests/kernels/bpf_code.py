# SPDX-License-Identifier: Apache-2.0
"""What the object of BPF programs asks of a kernel: per program its CO-RE relocations, helpers and the instructions
that can be reached, once it is known which relocations resolve.

Reachability is that of the verifier, simplified to constants: an instruction behind `if (bpf_core_field_exists(…))` is
not reached where the field does not exist. What is not known to be constant counts as either."""
import struct

EXISTS = 2              # enum bpf_core_relo_kind
TYPE_ID_LOCAL, TYPE_ID_TARGET, TYPE_EXISTS, TYPE_SIZE, ENUM_EXISTS, ENUM_VALUE = 6, 7, 8, 9, 10, 11
ASK_EXISTENCE = (EXISTS, TYPE_EXISTS, ENUM_EXISTS)
FUNC, SECTION = 2, 3    # ELF: STT_FUNC, STT_SECTION
PSEUDO_CALL = 1
ALL = (1 << 64) - 1


class Object:
    """An ELF file of BPF programs."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:5] != b"\x7fELF\x02":
            raise ValueError(f"{path} is not an object of BPF programs")
        table, = struct.unpack_from("<Q", self.data, 40)
        size, n, names = struct.unpack_from("<HHH", self.data, 58)
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + i * size) for i in range(n)]
        self.names = [self._string(self._bytes(names), h[0]) for h in self.headers]
        self.symbols = self._symbols()
        self.functions = {s["name"]: s for s in self.symbols if s["kind"] == FUNC}
        self.calls = self._calls()
        self.relocations = self._relocations()

    def section(self, name):
        return self._bytes(self.names.index(name))

    def _bytes(self, index):
        header = self.headers[index]
        return self.data[header[4]:header[4] + header[5]]

    @staticmethod
    def _string(table, at):
        return table[at:table.index(b"\0", at)].decode()

    def _symbols(self):
        found = []
        texts = self.section(".strtab")
        for at in range(0, len(self.section(".symtab")), 24):
            name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.section(".symtab"), at)
            found.append({"name": self._string(texts, name), "kind": info & 15, "section": index, "at": value, "size": size})
        return found

    def _function_at(self, index, at):
        return next((s["name"] for s in self.functions.values()
                     if s["section"] == index and s["at"] <= at < s["at"] + s["size"]), None)

    def _calls(self):
        """{function: {offset in the section: function that is called or passed there}}"""
        found = {name: {} for name in self.functions}
        for header in self.headers:
            if header[1] != 9:          # SHT_REL
                continue
            of, target = self._bytes(self.headers.index(header)), header[7]
            for at in range(0, len(of), 16):
                where, info = struct.unpack_from("<QQ", of, at)
                symbol = self.symbols[info >> 32]
                caller = self._function_at(target, where)
                if caller is None:
                    continue
                callee = symbol["name"] if symbol["kind"] == FUNC else None
                if symbol["kind"] == SECTION and self.headers[symbol["section"]][2] & 4:        # SHF_EXECINSTR
                    code, _, _, addend = struct.unpack_from("<BBhi", self._bytes(target), where)
                    callee = self._function_at(symbol["section"], (addend + 1) * 8 if code == 0x85 else addend)
                if callee is not None and callee in self.functions:
                    found[caller][where] = callee
        return found

    def _relocations(self):
        """{function: {offset in the section: (type id, access string, kind)}}"""
        found = {name: {} for name in self.functions}
        ext = self.section(".BTF.ext")
        strings = self.strings()
        head, = struct.unpack_from("<I", ext, 4)
        begin, length = struct.unpack_from("<II", ext, 24)
        at, end = head + begin, head + begin + length
        record, = struct.unpack_from("<I", ext, at)
        at += 4
        while at < end:
            section, n = struct.unpack_from("<II", ext, at)
            index = self.names.index(self._string(strings, section))
            at += 8
            for _ in range(n):
                where, type_id, access, kind = struct.unpack_from("<IIII", ext, at)
                found[self._function_at(index, where)][where] = (type_id, self._string(strings, access), kind)
                at += record
        return found

    def strings(self):
        btf = self.section(".BTF")
        head, = struct.unpack_from("<I", btf, 4)
        begin, length = struct.unpack_from("<II", btf, 16)
        return btf[head + begin:head + begin + length]

    def reached(self, programs, exists):
        """What programs reach: relocations and helpers, as sets of (function, relocation) and (function, number).

        exists(relocation) is whether the kernel has what it names."""
        relocations, helpers, todo, seen = set(), set(), list(programs), set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for at, code in reachable(self._code(name), self._constants(name, exists)):
                if at in self.relocations[name]:
                    relocations.add((name, self.relocations[name][at]))
                if at in self.calls[name]:
                    todo.append(self.calls[name][at])
                elif code[0] == 0x85 and code[1] >> 4 == 0:
                    helpers.add((name, code[3]))
        return relocations, helpers

    def _code(self, name):
        """{offset in the section: (opcode, registers, offset, immediate)} of a function"""
        function = self.functions[name]
        data = self._bytes(function["section"])
        return {at: struct.unpack_from("<BBhi", data, at)
                for at in range(function["at"], function["at"] + function["size"], 8)}

    def _constants(self, name, exists):
        """{offset: immediate} of instructions whose immediate is the answer to whether something exists"""
        return {at: int(exists(r)) for at, r in self.relocations[name].items() if r[2] in ASK_EXISTENCE}


ARITHMETIC = {0x00: lambda a, b: a + b, 0x10: lambda a, b: a - b, 0x20: lambda a, b: a * b, 0x40: lambda a, b: a | b,
              0x50: lambda a, b: a & b, 0x60: lambda a, b: a << (b & 63), 0x70: lambda a, b: a >> (b & 63),
              0xa0: lambda a, b: a ^ b, 0xb0: lambda a, b: b}


def signed(value):
    return value - (1 << 64) if value >> 63 else value


JUMPS = {0x10: lambda a, b: a == b, 0x20: lambda a, b: a > b, 0x30: lambda a, b: a >= b, 0x40: lambda a, b: a & b != 0,
         0x50: lambda a, b: a != b, 0x60: lambda a, b: signed(a) > signed(b), 0x70: lambda a, b: signed(a) >= signed(b),
         0xa0: lambda a, b: a < b, 0xb0: lambda a, b: a <= b, 0xc0: lambda a, b: signed(a) < signed(b),
         0xd0: lambda a, b: signed(a) <= signed(b)}


def stepped(state, code, immediate):
    """The registers after an instruction that is no jump; None: not constant."""
    operation, registers = code[0], list(state)
    to, source = code[1] & 15, code[1] >> 4
    kind = operation & 7
    if kind in (4, 7):                                  # arithmetic of 32 and 64 bits
        other = registers[source] if operation & 8 else immediate & ALL
        known = registers[to] if operation & 0xf0 != 0xb0 else 0
        what = ARITHMETIC.get(operation & 0xf0)
        registers[to] = None if what is None or other is None or known is None else what(known, other) & ALL
        if kind == 4 and registers[to] is not None:
            registers[to] &= 0xffffffff
    elif operation == 0x18:                             # a constant of 64 bits, or an address
        registers[to] = immediate & ALL if source == 0 else None
    elif kind == 1:                                     # a load
        registers[to] = None
    elif operation == 0x85:
        registers[:6] = [None] * 6
    return tuple(registers)


def reachable(code, constants):
    """The instructions that can be reached, as (offset, code). constants: immediates that replace those of the code."""
    begin = min(code)
    states, todo = {begin: (None,) * 11}, [begin]
    while todo:
        at = todo.pop()
        operation, registers, offset, immediate = code[at]
        immediate = constants.get(at, immediate)
        after = at + (16 if operation == 0x18 else 8)
        state, following = states[at], [after]
        kind = operation & 7
        if kind in (5, 6) and operation != 0x85:
            if operation == 0x95:
                following = []
            elif operation & 0xf0 == 0:
                following = [after + offset * 8]
            else:
                one, other = state[registers & 15], state[registers >> 4] if operation & 8 else immediate & ALL
                if kind == 6 and one is not None and other is not None:
                    one, other = one & 0xffffffff, other & 0xffffffff
                taken = None if one is None or other is None else JUMPS[operation & 0xf0](one, other)
                following = [after + offset * 8] * (taken is not False) + [after] * (taken is not True)
        else:
            state = stepped(state, (operation, registers, offset, immediate), immediate)
        for there in following:
            merged = state if there not in states else tuple(
                a if a == b else None for a, b in zip(states[there], state))
            if there not in states or merged != states[there]:
                states[there] = merged
                todo.append(there)
    return [(at, code[at]) for at in sorted(states)]
