#!/usr/bin/env python3
"""Tests of the scripts in tools/: that checks find what they are for, that text comes out right."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/corpus"), str(ROOT / "tools/demo")]
import check_layers
import check_sources
import extract
import formats
import kill


def tree(files):
    directory = tempfile.TemporaryDirectory()
    for name, text in files.items():
        path = Path(directory.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def pack_lzw(data):
    """compress(1) without its header, as simply as it can be."""
    table = {bytes([i]): i for i in range(256)}
    width, free, group, bits, position, word = 9, 257, 0, 0, 0, b""

    def put(code):
        nonlocal bits, position, group
        bits |= code << position
        position += width
        group += 1

    for i, byte in enumerate(data):
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        put(table[word])
        word = bytes([byte])
        if free == 1 << width and width < 16:
            position += width * (-group % 8)
            width, group = width + 1, 0
        if free < 1 << 16:
            table[longer] = free
            free += 1
    put(table[word])
    return bits.to_bytes((position + 7) // 8, "little")


class Layers(unittest.TestCase):
    def check(self, files):
        with tree(files) as directory:
            return check_layers.check(Path(directory))

    def test_refuses_an_include_against_the_table(self):
        found = self.check({"io/file.cpp": '#include "tensor/view.h"\n'})
        self.assertEqual(found, ["io/file.cpp: io must not include tensor/view.h"])

    def test_allows_what_the_table_says(self):
        self.assertEqual(self.check({"ops/x.cpp": '#include "tensor/view.h"\n'}), [])

    def test_keeps_third_party_headers_in_their_folder(self):
        found = self.check({"data/a.cpp": "#include <zlib.h>\n"})
        self.assertEqual(found, ["data/a.cpp: zlib.h belongs in io only"])

    def test_only_the_command_line_prints_or_exits(self):
        bad = {"train/a.cpp": "void f() { std::exit(1); }\n"}
        good = {"train/a.cpp": "// std::exit(1)\nint g() { return std::snprintf(t, 1, x); }\n"}
        self.assertEqual(self.check(bad), ["train/a.cpp: only cli/ prints or exits"])
        self.assertEqual(self.check(good), [])


class Sources(unittest.TestCase):
    def test_notices_unbuilt_files_long_files_and_notes(self):
        note = "TO" + "DO"
        files = {
            "a/x.cpp": "\n" * 801,
            "a/y.h": f"// {note}: later\n// {note}(#12): named\n",
            "b/compile_commands.json": "[]",
        }
        with tree(files) as directory:
            root = check_sources.ROOT
            try:
                check_sources.ROOT = Path(directory)
                found = check_sources.check(Path(directory) / "b")
            finally:
                check_sources.ROOT = root
        self.assertEqual(
            found,
            [
                "a/x.cpp: 801 lines, at most 800 are allowed",
                "a/x.cpp: no target builds it",
                "a/y.h: a note for later without the number of its issue",
            ],
        )


class Text(unittest.TestCase):
    def test_unpacks_what_compress_packed(self):
        text = b"".join(b"%d green bottles, " % (i * i) for i in range(9000))
        packed = pack_lzw(text)
        self.assertLess(len(packed), len(text) / 2)
        self.assertEqual(formats.unpack_lzw(packed), text)
        # gzip reads the same with compress's header in front.
        with tempfile.NamedTemporaryFile(suffix=".Z") as file:
            file.write(b"\x1f\x9d\x90" + packed)
            file.flush()
            done = subprocess.run(["gzip", "-dc", file.name], capture_output=True, check=True)
        self.assertEqual(done.stdout, text)

    def test_page_shows_text_without_navigation(self):
        page = (
            "<html><head><title>t</title></head><body><div class='navheader'><div>up</div></div>"
            "<p>one\n two</p><pre>a\n  b</pre><script>x()</script></body></html>"
        )
        self.assertEqual(extract.clean(formats.page_text(page)), "one two\n\na\n  b")

    def test_sample_is_a_function_of_the_texts(self):
        texts = [f"{i} " + "word " * 40 for i in range(100)]
        chosen = extract.select(texts, 5000)
        self.assertEqual(set(extract.select(reversed(texts), 5000)), set(chosen))
        self.assertLessEqual(sum(len(t) for t in chosen), 5000)
        self.assertEqual(len(extract.select(texts + texts, 10**6)), 100)


class Kill(unittest.TestCase):
    def run_script(self, script):
        with tempfile.TemporaryDirectory() as directory:
            command = ["sh", "-c", script, "sh", directory]
            return kill.run_and_kill(command, Path(directory), 40)

    def test_kills_inside_a_write(self):
        script = 'mkdir "$1/step-00000020.tmp-1"; sleep 0.1; mkdir "$1/step-00000040.tmp-1"; sleep 60'
        self.assertEqual(self.run_script(script), "step-00000040.tmp-1")

    def test_reports_a_run_that_ended_before(self):
        self.assertIsNone(self.run_script("true"))

    def test_reports_a_run_that_failed(self):
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_script("exit 3")


if __name__ == "__main__":
    unittest.main()
