"""The demonstration's text: from Debian packages, or, where those cannot be had, from the
repository."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXTRACT = ROOT / "tools/corpus/extract.py"
BUNDLED = ROOT / "assets/corpus"


def bundled():
    """Domain -> file of the corpus in the repository."""
    return {path.name.split(".")[0]: path for path in sorted(BUNDLED.glob("*.jsonl.gz"))}


def from_packages(directory):
    """Domain -> file, fetched and extracted where it is not there yet. None when a package cannot
    be had; says why."""
    listed = subprocess.run(
        [sys.executable, EXTRACT, "--list"], check=True, capture_output=True, text=True
    ).stdout
    packages = dict(line.split() for line in listed.splitlines())
    texts = {domain: directory / f"{domain}.jsonl" for domain in packages}
    missing = [domain for domain, path in texts.items() if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    unpacked = directory / "packages"
    try:
        roots = fetch([packages[domain] for domain in missing], unpacked)
    except subprocess.CalledProcessError as error:
        reasons = [line for line in (error.stderr or "").splitlines() if line.startswith("E:")]
        print(f"cannot fetch Debian packages: {reasons[0] if reasons else error}")
        return None
    except OSError as error:
        print(f"cannot fetch Debian packages: {error}")
        return None

    def extract(domain):
        command = [sys.executable, EXTRACT, domain, roots[packages[domain]], texts[domain]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(extract, missing):
            print("  " + line, flush=True)
    return texts


def fetch(packages, directory):
    """Downloads and unpacks, without installing and without root. Package -> where it lies."""
    wanted = [p for p in packages if not (directory / p / ".complete").exists()]
    if wanted:
        print(f"  downloading {', '.join(wanted)}", flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        try:
            run(["apt-get", "download", *wanted], directory)
        except subprocess.CalledProcessError:  # no lists, or old ones: get our own
            (directory / "lists/partial").mkdir(parents=True, exist_ok=True)
            lists = ["-o", f"Dir::State::lists={directory}/lists", "-o", f"Dir::Cache={directory}"]
            run(["apt-get", *lists, "-o", "APT::Update::Error-Mode=any", "update"], directory)
            run(["apt-get", *lists, "download", *wanted], directory)
    for package in wanted:
        archive = max(directory.glob(f"{package}_*.deb"))
        run(["dpkg-deb", "-x", archive, directory / package], directory)
        (directory / package / ".complete").touch()
        archive.unlink()
    return {package: directory / package for package in packages}


def run(command, directory):
    subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=directory,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
