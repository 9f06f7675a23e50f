"""Readers of the file formats that the text comes in; the standard library only."""

import gzip
import html.parser
import re
import struct

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def dictd_entries(index_path, data_path):
    """Texts of a dictd dictionary (RFC 2229's server): each different entry once, in file order."""
    with gzip.open(data_path, "rb") as file:
        data = file.read()
    spans = set()
    with open(index_path, encoding="utf-8") as file:
        for line in file:
            word, offset, length = line.rstrip("\n").split("\t")[:3]
            if not word.startswith("00-database") and not word.startswith("00database"):
                spans.add((base64_number(offset), base64_number(length)))
    for offset, length in sorted(spans):
        yield data[offset : offset + length].decode("utf-8", "replace")


def base64_number(digits):
    value = 0
    for digit in digits:
        value = value * 64 + BASE64.index(digit)
    return value


def unpack_windows(data):
    """The text of a bible.data file: a table of offsets, and windows packed by compress(1)."""
    if data[:4] != b"EC02":
        raise ValueError(f"not a packed text: starts with {data[:4]!r}, want b'EC02'")
    _, count = struct.unpack(">II", data[0x54:0x5C])
    offsets = struct.unpack(f">{count + 1}I", data[0x5C : 0x5C + 4 * (count + 1)])
    parts = [unpack_lzw(data[a:b]) for a, b in zip(offsets, offsets[1:])]
    return b"".join(parts).decode("ascii")


def unpack_lzw(data):
    """LZW as compress(1) writes it, after its three bytes of header: codes of 9 to 16 bits, least
    significant bit first, in groups of eight; code 256 empties the table."""
    clear, widest = 256, 16
    table = [bytes([i]) for i in range(256)] + [b""]
    out, previous, width, position, in_group = [], None, 9, 0, 0
    while position + width <= 8 * len(data):
        start = position >> 3
        code = int.from_bytes(data[start : start + 4], "little") >> (position & 7)
        code &= (1 << width) - 1
        position += width
        in_group += 1
        if code == clear:
            position += width * (-in_group % 8)
            del table[257:]
            previous, width, in_group = None, 9, 0
            continue
        if code < len(table):
            entry = table[code]
        elif code == len(table) and previous is not None:
            entry = previous + previous[:1]
        else:
            raise ValueError(f"code {code} at bit {position} is not in the table")
        out.append(entry)
        if previous is not None and len(table) < 1 << widest:
            table.append(previous + entry[:1])
        previous = entry
        if len(table) == 1 << width and width < widest:
            position += width * (-in_group % 8)
            width, in_group = width + 1, 0
    return b"".join(out)


BLOCKS = {
    "address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "h1", "h2", "h3",
    "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "section", "table", "tr", "ul",
}  # fmt: skip
HIDDEN = {"head", "nav", "script", "style", "svg", "template"}


class PageText(html.parser.HTMLParser):
    """The text that a page shows: a line for each block, `pre` kept as it is."""

    def __init__(self):
        super().__init__()
        self.parts = []
        self.hidden = []
        self.pre = 0

    def handle_starttag(self, tag, attributes):
        classes = dict(attributes).get("class") or ""
        # DocBook and SQLite have their navigation in divisions of these names.
        if tag in HIDDEN or (tag == "div" and re.match(r"nav(header|footer)|toc\b|nosearch", classes)):
            self.hidden.append([tag, 0])
        elif self.hidden and tag == self.hidden[-1][0]:
            self.hidden[-1][1] += 1
        if tag in BLOCKS:
            self.parts.append("\n")
        if tag in ("td", "th"):
            self.parts.append(" ")
        if tag == "pre":
            self.pre += 1

    def handle_endtag(self, tag):
        if self.hidden and tag == self.hidden[-1][0]:
            if self.hidden[-1][1] == 0:
                self.hidden.pop()
            else:
                self.hidden[-1][1] -= 1
        if tag in BLOCKS:
            self.parts.append("\n")
        if tag == "pre":
            self.pre = max(0, self.pre - 1)

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data if self.pre else re.sub(r"\s+", " ", data))


def page_text(page):
    parser = PageText()
    parser.feed(page)
    parser.close()
    return "".join(parser.parts)
