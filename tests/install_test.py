"""install_test.py BUILD: what `cmake --install` puts in place works from there."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(sys.argv.pop(1)).resolve()


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = Path(tempfile.mkdtemp(prefix="lockstep-install-"))
        run("cmake", "--install", str(BUILD), "--prefix", str(cls.prefix))
        cls.binary = cls.prefix / "bin/lockstep"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.prefix)

    def complete(self, *words):
        """What bash offers for the last of the words, by the installed script."""
        script = self.prefix / "share/bash-completion/completions/lockstep"
        quoted = " ".join(f"'{word}'" for word in words)
        code = f"""source {script}
            COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
            _lockstep; printf '%s\\n' "${{COMPREPLY[@]}}" """
        return run("bash", "-c", code).split()

    def test_everything_is_there(self):
        for name in (
            "share/lockstep/recipes/demo.toml",
            "share/lockstep/recipes/olmo3-7b/stage1-part1.toml",
            "share/lockstep/tasks/hellaswag.toml",
            "share/doc/lockstep/README.md",
            "share/doc/lockstep/CHANGELOG.md",
            "share/doc/lockstep/docs/formats.md",
            "share/zsh/site-functions/_lockstep",
        ):
            self.assertTrue((self.prefix / name).is_file(), name)
        for path in ROOT.glob("third_party/*/LICENSE*"):
            name = path.relative_to(ROOT / "third_party")
            copy = self.prefix / "share/doc/lockstep/licenses" / name
            self.assertEqual(copy.read_bytes(), path.read_bytes())

    def test_a_recipe_is_planned_from_there(self):
        recipe = self.prefix / "share/lockstep/recipes/olmo3-190m.toml"
        plan = run(str(self.binary), "train", str(recipe), "--dry-run", "--json", cwd="/")
        self.assertIn('"last_step"', plan)

    def test_one_version_everywhere(self):
        version = run(str(self.binary), "--version").strip()
        project = re.search(r"project\(lockstep VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
        newest = re.search(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
        self.assertEqual(version, project.group(1))
        self.assertEqual(version, newest.group(1))

    def test_bash_knows_the_function(self):
        script = self.prefix / "share/bash-completion/completions/lockstep"
        found = run("bash", "-c", f"source {script}; complete -p lockstep")
        self.assertIn("-F _lockstep lockstep", found)

    def test_every_command_of_the_help_is_completed(self):
        help_text = run(str(self.binary), "--help")
        commands = re.findall(r"^  (\S+)  +\S", help_text.split("Subcommands:")[1], re.M)
        self.assertGreater(len(commands), 10)
        self.assertEqual(sorted(self.complete("lockstep", "")), sorted(commands))
        self.assertEqual(self.complete("lockstep", "tokenize"), ["tokenize", "tokenizer"])

    def test_every_option_of_the_help_is_completed(self):
        for command in (["eval"], ["checkpoint", "average"], ["tokenizer", "train"], ["ablate"]):
            help_text = run(str(self.binary), *command, "--help")
            options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_text, re.M)
            self.assertIn("--json", options)
            offered = self.complete("lockstep", *command, "--")
            self.assertEqual(sorted(offered), sorted(options), command)

    def test_subcommands_values_and_recipe_keys(self):
        self.assertEqual(self.complete("lockstep", "checkpoint", "ver"), ["verify"])
        # A value is completed as a file, which bash does by itself.
        self.assertEqual(self.complete("lockstep", "eval", "--model", ""), [])
        self.assertEqual(self.complete("lockstep", "train", "mod"), [])
        keys = self.complete("lockstep", "train", "recipe.toml", "model.n_")
        self.assertEqual(keys, ["model.n_layers=", "model.n_heads=", "model.n_kv_heads="])
        # bash cuts words at "=".
        self.assertEqual(self.complete("lockstep", "train", "r.toml", "run.dir", "=", "ru"), [])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_completes_commands(self):
        code = f"""autoload -Uz compinit && compinit -D -u
            source {self.prefix}/share/zsh/site-functions/_lockstep
            (( $+_comps[lockstep] )) && print registered
            COMP_WORDS=(lockstep checkpoint ver); COMP_CWORD=2
            emulate ksh -c '_lockstep; print -l -- "${{COMPREPLY[@]}}"' """
        # zsh itself drops what does not begin with the word.
        self.assertEqual(run("zsh", "-f", "-c", code).split(),
                         ["registered", "ls", "verify", "digest", "average"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
