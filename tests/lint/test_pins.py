# SPDX-License-Identifier: Apache-2.0
"""The check of checksums, on small files that have them or not."""
import unittest

import pins

SUM, OTHER = "0" * 64, "1" * 64
DIGEST = "@sha256:" + SUM
PINNED = f"# Made\na-b==1.0 \\\n    --hash=sha256:{SUM} \\\n    --hash=sha256:{OTHER}\nc==2 \\\n    --hash=sha256:{SUM}\n"


class Pins(unittest.TestCase):
    def found(self, path, text, **others):
        """Where something is wrong, and the first words on it."""
        return [" ".join(sentence.split()[:4]) for sentence in pins.check({path: text, **others})]

    def test_requirements_have_versions_and_checksums(self):
        self.assertEqual([], self.found("r.txt", PINNED))
        for line in ("c==2", "c>=2", "c", "c[x]==2", f"c>=2 --hash=sha256:{SUM}", "c==2 --hash=sha256:00", "-r other.txt",
                     "c @ https://h/c.whl", f"c==2 --hash=md5:{SUM}", "--index-url https://h/simple"):
            wrong = self.found("r.txt", PINNED + line + "\n")
            self.assertEqual([f"r.txt:7: {line.split()[0]} has no"], wrong, line)

    def test_text_is_no_requirement(self):
        self.assertEqual([], self.found("layout.txt", "struct a 8\nb = 3\n"))

    def test_requirements_are_those_that_were_asked_for(self):
        asked = {"r.in": "-r other.in\n# Why.\na_B[x]==1.0  # why\nd\n", "other.in": "", "other.txt": ""}
        self.assertEqual([], self.found("r.txt", PINNED, **asked))
        asked["r.in"] = "A.b==1.1\n"
        self.assertEqual(["r.txt: not made from"], self.found("r.txt", PINNED, **asked))
        self.assertEqual(["r.in: is not pinned:"], self.found("r.in", "a==1\n"))
        self.assertEqual([], self.found("template.in", "@VERSION@\n"))

    def test_images_of_a_dockerfile(self):
        good = (f"ARG BASE=debian:12{DIGEST}\nARG PART=made\nFROM ${{BASE}} AS made\nFROM --platform=linux/amd64 a:1{DIGEST} AS two\n"
                "COPY --from=made /a /a\nFROM ${PART}\nCOPY --from=two /b /b\n")
        self.assertEqual([], self.found("ops/Dockerfile", good))
        for line in ("FROM debian:12", "FROM debian", "ARG X=debian:12\nFROM ${X}", "FROM $Y", "COPY --from=debian:12 /a /a",
                     f"FROM debian:12@sha256:{SUM[1:]}", f"FROM debian:12{DIGEST}0"):
            wrong = pins.check({"a.Dockerfile": good + line + "\n"})
            self.assertEqual(1, len(wrong), line)
            self.assertIn("has no digest", wrong[0])

    def test_images_of_services_and_jobs(self):
        good = f"services:\n  a:\n    image: x/y:1{DIGEST}\n  b:\n    image: ours\n    build:\n      context: .\n"
        self.assertEqual([], self.found("docker-compose.yml", good))
        self.assertEqual(["docker-compose.yml:9: the image x/y:1"], self.found("docker-compose.yml", good + "  c:\n    image: x/y:1\n"))
        self.assertEqual(["ci.yml:1: the image debian:12"], self.found("ci.yml", 'image: "debian:12"\n'))

    def test_actions_are_commits(self):
        self.assertEqual([], self.found("ci.yml", f"- uses: a/b@{'0' * 40} # v1\n- uses: ./own\n"))
        self.assertEqual(["ci.yml:1: the action a/b@v1"], self.found("ci.yml", "- uses: a/b@v1\n"))

    def test_python_packages_are_installed_by_checksum(self):
        for line in ("pip install x", "pip download x", "uv pip install --quiet \\\n  -r r.txt", "pip3 -q install x", '"$uv/bin/uv" pip sync r.txt'):
            self.assertEqual(["a:2: fetches Python packages"], self.found("a", "#!/bin/sh\n" + line + "\n"), line)
        self.assertEqual([], self.found("a", "#!/bin/sh\npip install --quiet \\\n  --require-hashes -r r.txt  # pip install x\n"))
        self.assertEqual(["a.py:1: fetches Python packages"], self.found("a.py", 'run([python, "-m", "pip", "-q", "install", "x"])\n'))
        self.assertEqual([], self.found("a.py", 'sys.exit("it is missing: pip install x")\n'))

    def test_what_is_fetched_is_compared(self):
        for line in ("curl -sS -o x https://h/x", "wget https://h/x", "mvn -q dependency:get", "git clone x",
                     "npm ci", "apt-get -q source x"):
            self.assertEqual(["a:2: fetches what it"], self.found("a", f"#!/bin/sh\n{line}\n"), line)
            self.assertEqual([], self.found("a", f'#!/bin/sh\n{line}\necho "{SUM}  x" | sha256sum --check\n'), line)
        for line in ("curl -sS http://localhost:8081/", "apt-get install -y x", "git log", "# curl https://h/x", "mvnd"):
            self.assertEqual([], self.found("a", f"#!/bin/sh\n{line}\n"), line)
        self.assertEqual(["a.cmake:1: fetches what it"], self.found("a.cmake", "file(DOWNLOAD https://h/x x)\n"))
        self.assertEqual([], self.found("notes.md", "curl -o x https://h/x\n"))

    def test_exceptions_say_why(self):
        for image, why in pins.NO_DIGEST.items():
            self.assertNotIn("@", image)
            self.assertGreater(len(why), 20)

    def test_an_exception_that_nothing_needs_is_gone(self):
        text = "\n".join(pins.read().values())
        for image in pins.NO_DIGEST:
            self.assertIn(f"image: {image}\n", text)


if __name__ == "__main__":
    unittest.main()
