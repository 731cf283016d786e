# SPDX-License-Identifier: Apache-2.0
"""mandoc, which BSD and Alpine read manuals with, warns of nothing in them; groff's warnings are looked at in analytics/tests."""
import subprocess

import tree

pages = tree.files("docs/*.[157]")
done = subprocess.run([tree.need("mandoc", "mandoc"), "-T", "lint", "-W", "warning", *pages], cwd=tree.ROOT,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if not pages or done.returncode and not done.stdout:
    raise SystemExit(f"mandoc ended with {done.returncode}; pages: {pages}")
tree.verdict(done.stdout.splitlines(), f"{len(pages)} manual pages")
