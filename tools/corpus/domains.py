"""Documents of each domain, from an unpacked package: one function a source."""

import re
from pathlib import Path

from formats import dictd_entries, page_text, unpack_windows

BOOKS = (
    "Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth 1_Samuel 2_Samuel 1_Kings "
    "2_Kings 1_Chronicles 2_Chronicles Ezra Nehemiah Esther Job Psalms Proverbs Ecclesiastes "
    "Song_of_Solomon Isaiah Jeremiah Lamentations Ezekiel Daniel Hosea Joel Amos Obadiah Jonah "
    "Micah Nahum Habakkuk Zephaniah Haggai Zechariah Malachi Matthew Mark Luke John Acts Romans "
    "1_Corinthians 2_Corinthians Galatians Ephesians Philippians Colossians 1_Thessalonians "
    "2_Thessalonians 1_Timothy 2_Timothy Titus Philemon Hebrews James 1_Peter 2_Peter 1_John "
    "2_John 3_John Jude Revelation"
).split()


def scripture(root):
    """Chapters of the King James Version (package bible-kjv-text)."""
    text = unpack_windows((root / "usr/lib/bible.data").read_bytes())
    chapters, names = {}, []
    for line in text.splitlines():
        verse = re.match(r"(\d?[A-Za-z]+)(\d+):(\d+) (.*)", line)
        if not verse:
            continue
        short, chapter, number, words = verse.groups()
        if short not in names:
            names.append(short)
        chapters.setdefault((short, chapter), []).append(f"{number} {words}")
    for (short, chapter), verses in chapters.items():
        book = BOOKS[names.index(short)].replace("_", " ")
        yield f"{book} {chapter}\n\n" + "\n".join(verses)


def dictionary(root):
    """Entries of the Collaborative International Dictionary of English (package dict-gcide)."""
    base = root / "usr/share/dictd"
    yield from dictd_entries(base / "gcide.index", base / "gcide.dict.dz")


def source_code(root):
    """Modules of a web framework (package python3-django): many small files, so that a share of
    them, taken by document, is more than a few."""
    yield from files(root / "usr/lib/python3/dist-packages/django", "*.py")


def database_docs(root):
    """Pages of PostgreSQL's manual (package postgresql-doc-15)."""
    for page in files(root / "usr/share/doc/postgresql-doc-15/html", "*.html"):
        yield page_text(page)


def mathematics(root):
    """Comments of the Metamath proof library, each with what it states (package
    metamath-databases)."""
    text = (root / "usr/share/metamath/databases/set.mm").read_text(encoding="ascii")
    statement = re.compile(r"\$\(\s(.*?)\s\$\)\s+(?:(\S+ \$[ap].*?)\s\$[.=])?", re.S)
    for match in statement.finditer(text):
        comment, stated = match.groups()
        if "#*#*" in comment or "=-=-" in comment:  # a heading
            continue
        words = re.sub(r"\s+", " ", comment)
        yield words + ("\n" + re.sub(r"\s+", " ", stated) if stated else "")


def c_source(root):
    """Parts of SQLite's C files, cut between top-level definitions (source package sqlite3)."""
    for text in files(root / "src", "*.c"):
        yield from gather(re.split(r"(?<=\n}\n)", text), 1500)


def database_pages(root):
    """Pages of SQLite's documentation (source package sqlite3, www)."""
    for page in files(root, "*.html"):
        yield page_text(page)


def timekeeping(root):
    """What the time zone database says about its sources, and its news (source package tzdata)."""
    regions = "africa antarctica asia australasia europe northamerica southamerica backward etcetera"
    for name in regions.split():
        text = (root / name).read_text(encoding="utf-8")
        notes = re.findall(r"(?:^#.*\n)+", text, re.M)
        yield from gather((re.sub(r"(?m)^# ?", "", note) + "\n" for note in notes), 600)
    news = (root / "NEWS").read_text(encoding="utf-8")
    for release in re.split(r"(?m)^(?=Release )", news):
        yield from gather(re.split(r"(?<=\n)\n(?=  [A-Z])", release), 1500)
    yield page_text((root / "theory.html").read_text(encoding="utf-8"))


def files(root, pattern):
    """Texts of the files below `root`, in the order of their names, but for those not in UTF-8."""
    for path in sorted(Path(root).rglob(pattern)):
        if path.is_file():
            try:
                yield path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def gather(parts, least):
    """Neighbouring parts joined until a document has at least so many characters."""
    document = ""
    for part in parts:
        document += part
        if len(document) >= least:
            yield document
            document = ""
    if document:
        yield document


# Domain -> (function, Debian package). What ./demo trains on.
DEMO = {
    "scripture": (scripture, "bible-kjv-text"),
    "dictionary": (dictionary, "dict-gcide"),
    "source-code": (source_code, "python3-django"),
    "database-docs": (database_docs, "postgresql-doc-15"),
    "mathematics": (mathematics, "metamath-databases"),
}

# Domain -> function. What the corpus in the repository comes from; all of it is public domain.
BUNDLED = {
    "scripture": scripture,
    "mathematics": mathematics,
    "c-source": c_source,
    "database-pages": database_pages,
    "timekeeping": timekeeping,
}
