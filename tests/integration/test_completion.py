# SPDX-License-Identifier: Apache-2.0
"""What bash, zsh and fish offer after `sluice …`, each asked as its user asks: every command and option of the help."""
import os
import pty
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import harness

FILES = os.path.join(harness.ROOT, "ops", "completion")
ANALYTICS = os.path.join(harness.ROOT, "build", "analytics", "base", "bin")

BASH = r"""
. {file}
ask() {{
	COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
	_sluice 2>{room}/error
	printf '%s\n' "${{COMPREPLY[@]}}"
}}
"""
# Hands each match of the completion system to a file, and says when it has no more.
ZSH = r"""
PS1='' PS2=''
fpath=({folder} $fpath)
autoload -Uz compinit
compinit -u -D
setopt no_beep no_auto_menu no_list_ambiguous
LISTMAX=100000
compadd() {{
	local -a hits
	if [[ ${{@[1,(i)(-|--)]}} != *-(O|A|D)\ * ]]; then
		builtin compadd -A hits "$@"
		print -l -r -- $hits >>{room}/hits
	fi
	builtin compadd "$@"
}}
said() {{ print -r -- END >>{room}/hits }}
asked() {{ comppostfuncs=(said) ; _main_complete }}
zle -C ask list-choices asked
bindkey '^T' ask
print -r -- READY >>{room}/hits
"""


class Zsh:
    """An interactive zsh on a terminal of its own."""

    def __init__(self, room):
        self.hits = os.path.join(room, "hits")
        self.main, end = pty.openpty()
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=end, stdout=end, stderr=end, start_new_session=True,
                                        env={"PATH": "/usr/bin:/bin", "TERM": "dumb", "HOME": room, "LC_ALL": "C.UTF-8"})
        os.close(end)
        threading.Thread(target=self.drain, daemon=True).start()
        setup = os.path.join(room, "setup.zsh")
        with open(setup, "w") as f:
            f.write(ZSH.format(folder=FILES, room=room))
        open(self.hits, "w").close()
        os.write(self.main, f". {setup}\n".encode())
        self.wait("READY")

    def drain(self):
        try:
            while os.read(self.main, 65536):
                pass
        except OSError:
            pass

    def wait(self, last):
        for _ in range(600):
            with open(self.hits) as f:
                lines = f.read().split("\n")
            if last in lines:
                return set(lines) - {last, ""}
            time.sleep(0.05)
        raise AssertionError(f"zsh did not say {last}")

    def ask(self, line):
        open(self.hits, "w").close()
        os.write(self.main, b"\x15" + line.encode() + b"\x14")
        return {hit.strip() for hit in self.wait("END")}

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)


def usage(path):
    """The help of `sluice WORD…`."""
    program, words = harness.SLUICE, list(path)
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    if words and words[0] in ("tune", "sweep", "lake"):
        environment["SLUICE_COMMAND"] = f"sluice {words[0]}"
        program = os.path.join(ANALYTICS, f"sluice-{words.pop(0)}")
    return subprocess.run([program, *words, "--help"], env=environment, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


# What the help of each says of the words below it.
BELOW = {(): set(re.findall(r"(?m)^  ([a-z-]+) {2,}", usage(()))),
         ("tune",): {"compare", "trend", "recommend", "export"}, ("lake",): {"info", "compact", "retain"},
         ("dead-letters",): {"list", "show", "replay"},
         ("ctl",): {"status", "reload", "rules", "attach", "detach", "explain", "tag", "settle"},
         ("ctl", "rules"): {"list", "add", "remove"}, ("ctl", "attach"): {"network"}}


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.mkdtemp(prefix="sluice-completion-")
        cls.addClassCleanup(shutil.rmtree, cls.room)
        cls.folder = os.path.join(cls.room, "files")
        for name in ("a folder", "other"):
            os.makedirs(os.path.join(cls.folder, name))
        with open(os.path.join(cls.folder, "a file"), "w"):
            pass
        cls.zsh = Zsh(cls.room)
        cls.addClassCleanup(cls.zsh.close)

    def bash(self, *words):
        script = BASH.format(file=os.path.join(FILES, "sluice.bash"), room=self.room) + 'ask "$@"\n'
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=60, cwd=self.room)
        with open(os.path.join(self.room, "error")) as f:
            errors = [line for line in f if "compopt: not currently executing completion function" not in line]
        self.assertEqual([], errors)
        return set(done.stdout.split("\n")) - {""}

    def fish(self, line):
        script = f'source {FILES}/sluice.fish; complete -C "$argv"'
        done = subprocess.run(["fish", "--no-config", "-c", script, "--", line], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True, timeout=60, cwd=self.room,
                              env={"PATH": "/usr/bin:/bin", "HOME": self.room, "LC_ALL": "C.UTF-8"})
        self.assertEqual("", done.stderr)
        return {text.split("\t")[0] for text in done.stdout.splitlines()}

    def all_offer(self, words, wanted, exactly=True):
        """Each shell offers what is wanted after these words, the last of which is typed in part."""
        line = " ".join(["sluice", *words])
        for shell, offered in (("bash", self.bash("sluice", *words)), ("zsh", self.zsh.ask(line)),
                               ("fish", self.fish(line))):
            with self.subTest(shell=shell, line=line):
                if exactly:
                    self.assertEqual(sorted(wanted), sorted(offered))
                else:
                    self.assertLessEqual(wanted, offered)

    def test_it_is_what_the_help_says(self):
        done = subprocess.run([os.path.join(harness.ROOT, "dev", "completions"), "--check"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300,
                              env={**os.environ, "SLUICE_BUILD": harness.BUILD})
        self.assertEqual((0, ""), (done.returncode, done.stdout))

    def test_every_command(self):
        self.assertLessEqual({"run", "agent", "dead-letters", "lake", "help"}, BELOW[()])
        for path, words in BELOW.items():
            self.all_offer([*path, ""], words, exactly=path != ("tune",))

    def test_every_option(self):
        paths = [(name,) for name in BELOW[()] - {"help"}]
        paths += [(above, name) for above in ("tune", "lake") for name in BELOW[(above,)]]
        for path in paths:
            options = set(re.findall(r"(?m)^ {2,8}(?:-\w(?: \S+)?, )?(--[a-z-]+)", usage(path)))
            self.assertIn("--help", options)
            self.all_offer([*path, "--"], options)

    def test_options_of_the_agents_commands(self):
        self.all_offer(["ctl", "settle", "--de"], {"--delivered"})
        self.all_offer(["ctl", "tag", "--p"], {"--pid", "--pipeline"})
        self.all_offer(["ctl", "--json", "st"], {"status"})

    def test_values(self):
        topics = {"program", "usage", "task", "run", "host", "finding", "agent"}
        for path in (["cat", "--topic"], ["cat", "--raw", "-t"], ["lake", "compact", "--topic"],
                     ["dead-letters", "list", "--topic"]):
            self.all_offer([*path, ""], topics)
        self.all_offer(["tune", "--format", ""], {"table", "json", "csv", "html"})
        self.all_offer(["tune", "trend", "--format", ""], {"table", "json", "csv"})
        self.all_offer(["sweep", "--by", "po"], set())
        self.all_offer(["check", "--uid", "nob"], {"nobody"})
        self.all_offer(["ctl", "explain", str(os.getpid())], {str(os.getpid())}, exactly=False)
        # Bash makes three words of it, fish one.
        self.assertEqual({"program"}, self.bash("sluice", "cat", "--topic", "=", "pr"))
        self.assertEqual(topics, self.bash("sluice", "cat", "--topic", "="))
        self.assertEqual({"--topic=program"}, self.fish("sluice cat --topic=pr"))
        self.assertIn("program", self.zsh.ask("sluice cat --topic=pr"))

    def test_folders_and_files(self):
        at = self.folder + "/"
        self.assertEqual({at + "a folder", at + "other"}, self.bash("sluice", "run", "--lake", at))
        self.assertEqual({at + "a file", at + "a folder"}, self.bash("sluice", "tune", "-o", at + "a"))
        self.assertEqual({at + "other/"}, self.fish(f"sluice run --lake {at}o"))
        self.assertEqual({"other"}, {hit.strip("/") for hit in self.zsh.ask(f"sluice run --lake {at}o")})

    def test_the_command_of_a_run(self):
        for words in (["run", "sha256su"], ["run", "--quiet", "sha256su"], ["run", "--lake", "x", "--", "sha256su"],
                      ["check", "--explain", "--", "sha256su"]):
            self.all_offer(words, {"sha256sum"})
        # Its options are its own.
        self.assertNotIn("--quiet", self.bash("sluice", "run", "ls", "--q"))
        self.assertNotIn("--quiet", self.fish("sluice run ls --qui"))
        self.assertNotIn("--quiet", self.zsh.ask("sluice run ls --qui"))

    def test_nothing_where_nothing_fits(self):
        self.assertEqual(set(), self.bash("sluice", "doctor", ""))
        self.assertEqual(set(), self.fish("sluice doctor "))
        # Zsh offers the options where there is nothing else.
        self.assertEqual({"-h", "--help", "--json", "--self-test"}, self.zsh.ask("sluice doctor "))
        self.all_offer(["run", "--nonsen"], set())
        self.all_offer(["lake", "nonsen"], set())


if __name__ == "__main__":
    harness.main()
