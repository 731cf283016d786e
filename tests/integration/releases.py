# SPDX-License-Identifier: Apache-2.0
"""What older releases left on the disk (tests/fixtures/releases, made by dev/keep-release), and their records' digests."""
import glob
import hashlib
import json
import os
import subprocess
import tempfile

import harness

FOLDER = os.path.join(harness.ROOT, "tests", "fixtures", "releases")


def names():
    return sorted(os.listdir(FOLDER))


def unpack(name, to):
    """Its spool and lake are in the folder; {"spool": digests, "lake": digests}."""
    subprocess.run(["tar", "--no-same-owner", "-xJf", os.path.join(FOLDER, name, "state.tar.xz"), "-C", to], check=True)
    with open(os.path.join(FOLDER, name, "expected.json")) as f:
        return json.load(f)


def schemas(name):
    """{topic: schema} of its records, as its agent kept them beside the spool."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        unpack(name, folder)
        for path in glob.glob(os.path.join(folder, "spool", "schemas", "*.avsc")):
            with open(path) as f:
                schema = json.load(f)
            found[f"{schema['namespace']}.{schema['name'].lower()}"] = schema
    return found


def digest(record):
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def digests(topics):
    """{topic: ["SEQ DIGEST"]} of read_lake()'s records."""
    return {topic: ["%d %s" % (r["seq"], digest(r)) for r in records] for topic, records in topics.items()}
