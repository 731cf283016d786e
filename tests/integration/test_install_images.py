# SPDX-License-Identifier: Apache-2.0
"""ops/cloud-init and ops/packer: what cloud-init and a parser of HCL say of them, and what their commands do with a mirror."""
import os
import re
import unittest

import hcl2
import yaml

import harness
import release_folder as made
import test_install_script as script

USER_DATA = os.path.join(harness.ROOT, "ops", "cloud-init", "user-data.yaml")
PACKER = os.path.join(harness.ROOT, "ops", "packer", "sluice.pkr.hcl")
CLOUD_INIT = os.path.join(harness.ROOT, "build", "cloud-init")


def plain(text):
    """Without the quotes around it, which the parser keeps."""
    return text[1:-1] if text.startswith('"') else text


class Images(script.Case):
    systemd = True

    def setUp(self):
        super().setUp()
        version = script.VERSIONS[-1]
        made.need("cp", made.INSTALL, self.mirror.at(version))
        self.mirror.sign(version)
        self.values = {"MIRROR": script.Sources.serve(self), "VERSION": version, "RELEASE_KEY": self.mirror.key.text,
                       "INSTALL_SHA256": made.sha256(made.INSTALL)}

    def user_data(self, **changed):
        """With the values in it, as README.md says."""
        with open(USER_DATA) as f:
            text = f.read()
        with open(os.path.join(os.path.dirname(USER_DATA), "README.md")) as f:
            replaced = re.findall(r"s\|(=?)([A-Z][A-Z0-9_]+)\|", f.read())
        self.assertEqual(sorted(self.values), sorted(name for _, name in replaced))
        for mark, name in replaced:
            self.assertIn(mark + name, text)
            text = text.replace(mark + name, mark + {**self.values, **changed}[name])
        return text

    def schema(self, text):
        path = os.path.join(self.room, "user-data.yaml")
        made.write(path, text)
        return made.run("/usr/bin/python3", "-B", f"{CLOUD_INIT}/usr/bin/cloud-init", "schema", "--config-file", path,
                        env={**os.environ, "PYTHONPATH": f"{CLOUD_INIT}/usr/lib/python3/dist-packages"})

    def test_cloud_init_takes_it(self):
        done = self.schema(self.user_data())
        self.assertEqual(0, done.returncode, done.stdout)
        done = self.schema(self.user_data().replace("runcmd:\n  - [", "runcmd:\n  - {").replace("sluice]\n", "sluice: 1}\n"))
        self.assertNotEqual(0, done.returncode, done.stdout)

    def boot(self, text):
        """What cloud-init does with it: files, then commands."""
        data = yaml.safe_load(text)
        for file in data["write_files"]:
            self.root.write(file["path"], file["content"], int(file["permissions"], 8))
        (command,) = data["runcmd"]
        return self.root.run("env", "SLUICE_INSTALL_WATCH=1", *command)

    def test_a_first_boot(self):
        done = self.boot(self.user_data())
        self.assertEqual((0, "1.10.0"), (done.returncode, self.version()), done.stdout)
        self.assertTrue(self.root.fake("active"))
        self.assertEqual([], [n for n in os.listdir(os.path.join(self.room, "run")) if n.startswith("install-")])
        # The agent is not root, and reads all of it.
        written = [f["path"] for f in yaml.safe_load(self.user_data())["write_files"] if f["path"].startswith("/etc/sluice/")]
        self.assertIn("/etc/sluice/conf.d/50-site.yaml", written)
        done = self.root.run("setpriv", "--reuid=sluice", "--regid=sluice", "--init-groups", "--bounding-set=-all", "cat", *written)
        self.assertEqual(0, done.returncode, done.stdout)

    def test_another_script_is_not_run(self):
        done = self.boot(self.user_data(INSTALL_SHA256="0" * 64))
        self.assertNotEqual(0, done.returncode)
        self.assertIn("FAILED", done.stdout)
        self.assertIsNone(self.version())

    def test_packer(self):
        with open(PACKER) as f:
            data = hcl2.load(f)
        variables = {plain(name) for block in data["variable"] for name in block if not name.startswith("__")}
        with open(PACKER) as f:
            used = set(re.findall(r"\bvar\.(\w+)", f.read()))
        self.assertEqual(variables, used)
        shell = data["build"][0]["provisioner"][0]
        shell = shell.get("shell") or shell['"shell"']
        given = dict(plain(line).split("=", 1) for line in shell["environment_vars"])
        self.assertEqual(set(self.values), set(given))
        # Its commands, in the root: apt-get has nothing to do there. Checked and started is nothing.
        commands = [plain(line).replace('\\"', '"') for line in shell["inline"]]
        self.root.fake("doctor", "125\n")
        self.root.write("/usr/local/bin/apt-get", '#!/bin/sh\n[ "$1" = -qq ] || exec /usr/bin/apt-get "$@"\n', 0o755)
        done = self.root.run("env", *(f"{name}={value}" for name, value in self.values.items()), "sh", "-eu", "-c",
                             "\n".join(commands))
        self.assertEqual((0, "1.10.0"), (done.returncode, self.version()), done.stdout)
        self.assertIn("not checked", done.stdout)
        self.assertFalse(self.root.fake("active"))
        self.assertIn("enable sluice-agent.service", self.root.asked())


if __name__ == "__main__":
    harness.main()
