# SPDX-License-Identifier: Apache-2.0
"""signed: what a release folder's SHA256SUMS lists, once minisign's signature of it was verified.

On the controller, with cryptography, which ansible-core itself needs: neither it nor a host has to have minisign.
minisign's format: two lines of a public key, four of a signature, each with an untrusted comment first.
"""
from __future__ import annotations

import base64
import binascii
import hashlib
import re

from ansible.errors import AnsibleFilterError
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DOCUMENTATION = """
name: signed
short_description: Verifies a release's SHA256SUMS and returns what it lists
description:
  - Verifies the minisign signature of the text of SHA256SUMS, and that of its trusted comment.
  - Fails if the signature is not by that key, if the trusted comment is not C(sluice VERSION), or if a line is malformed.
options:
  _input:
    description: The text of SHA256SUMS.
    type: str
    required: true
  signature:
    description: The text of SHA256SUMS.minisig.
    type: str
    required: true
  key:
    description: The public key, as minisign writes it, or its last line alone.
    type: str
    required: true
author:
  - The sluice authors
"""
EXAMPLES = """
- ansible.builtin.set_fact:
    release: "{{ sums | sluice.agent.signed(signature, key) }}"
"""
RETURN = """
_value:
  description: C(version), and in C(files) the SHA-256 of each file by its name.
  type: dict
"""

# Algorithm: Ed is a signature of the file itself, ED of its BLAKE2b, which is what minisign writes today.
KEY_ALGORITHM, PREHASHED = b"Ed", b"ED"
TRUSTED = "trusted comment: "
LINE = re.compile(r"([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._+~-]*)")
VERSION = re.compile(r"sluice ([0-9][A-Za-z0-9.+~-]*)")


def _bytes(line, length, what):
    try:
        raw = base64.b64decode(line.strip(), validate=True)
    except (binascii.Error, ValueError) as e:
        raise AnsibleFilterError(f"{what} is not in minisign's format: {e}") from e
    if len(raw) != length:
        raise AnsibleFilterError(f"{what} is not in minisign's format: {len(raw)} bytes, not {length}")
    return raw


def _public_key(text):
    """(id, key)"""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("untrusted comment:")]
    if len(lines) != 1:
        raise AnsibleFilterError(f"the public key has {len(lines)} lines beside its comment, not 1")
    raw = _bytes(lines[0], 42, "the public key")
    if raw[:2] != KEY_ALGORITHM:
        raise AnsibleFilterError("the public key is not of minisign")
    return raw[2:10], Ed25519PublicKey.from_public_bytes(raw[10:])


def _verify(key, signature, message, what):
    try:
        key.verify(signature, message)
    except InvalidSignature as e:
        raise AnsibleFilterError(f"{what} is not signed by this key: the files are damaged, or not the publisher's") from e


def _entries(sums):
    files = {}
    for number, line in enumerate(sums.splitlines(), 1):
        found = LINE.fullmatch(line)
        if not found:
            raise AnsibleFilterError(f"SHA256SUMS:{number}: not a checksum, two blanks and the name of a file")
        if found[2] in files:
            raise AnsibleFilterError(f"SHA256SUMS:{number}: {found[2]} is listed twice")
        files[found[2]] = found[1]
    if not files:
        raise AnsibleFilterError("SHA256SUMS lists no file")
    return files


def signed(sums, signature, key):
    """See DOCUMENTATION. Nothing of sums is used before both signatures are verified."""
    key_id, public = _public_key(str(key))
    lines = str(signature).splitlines()
    if len(lines) != 4 or not lines[2].startswith(TRUSTED):
        raise AnsibleFilterError("SHA256SUMS.minisig is not in minisign's format: four lines, the third a trusted comment")
    raw = _bytes(lines[1], 74, "SHA256SUMS.minisig")
    if raw[:2] != PREHASHED:
        raise AnsibleFilterError("SHA256SUMS.minisig is not prehashed: sign with minisign 0.10 or newer, or with -H")
    if raw[2:10] != key_id:
        raise AnsibleFilterError(f"SHA256SUMS.minisig is by the key {raw[2:10][::-1].hex().upper()}, and the key that is "
                                 f"trusted is {key_id[::-1].hex().upper()}")
    _verify(public, raw[10:], hashlib.blake2b(str(sums).encode()).digest(), "SHA256SUMS")
    comment = lines[2][len(TRUSTED):]
    _verify(public, _bytes(lines[3], 64, "SHA256SUMS.minisig"), raw[10:] + comment.encode(), "the trusted comment")
    version = VERSION.fullmatch(comment)
    if not version:
        raise AnsibleFilterError(f'the trusted comment is "{comment}", not "sluice VERSION": signed for something else')
    return {"version": version[1], "files": _entries(str(sums))}


class FilterModule:
    """What Ansible finds here."""

    def filters(self):
        return {"signed": signed}
