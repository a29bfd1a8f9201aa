"""Fetches the Jinja engine that renders chat templates into .cache/jinja.

The engine is llama.cpp's (MIT licence), which no Debian package offers; the source archive of llama-cpp-python carries
it. Only its few files, the licence and the chat templates that the tests use are kept. Nothing happens where they are
in place already.

The engine marks which text of a prompt came from the input, but several filters lose the mark (split, tojson, join,
indexing). The edits below turn it round: only what the template itself spells out counts as the template's text. They
also keep a template from ending the process by endless recursion or a division by zero.

usage: fetch_jinja.py [--archive FILE] [FOLDER]
"""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "llama-cpp-python==0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
# What is kept of the archive -> where it goes.
WANTED = (
    (re.compile(r"common/jinja/((?!caps)\w+\.(?:h|cpp))"), "jinja"),
    (re.compile(r"common/(unicode\.(?:h|cpp))"), "."),
    (re.compile(r"(LICENSE)"), "."),
    (re.compile(r"models/templates/([\w.-]+\.jinja)"), "templates"),
)
DEPTH_GUARD = """
    static thread_local int depth = 0;
    struct depth_guard {
        depth_guard() { if (++depth > 400) { --depth; throw std::runtime_error("nested too deeply"); } }
        ~depth_guard() { --depth; }
    } guard;
"""
# File, text that must occur exactly once, text in its place.
EDITS = (
    ("jinja/string.h", "bool user_input = false)", "bool user_input = true)"),
    ("jinja/runtime.h", "return mk_val<value_string>(val);", "return mk_val<value_string>(string(val, false));"),
    ("jinja/value.cpp", "const bool fmt_is_input = fmt.all_parts_are_input();",
     "const bool fmt_is_input = std::any_of(fmt.parts.begin(), fmt.parts.end(), "
     "[](const string_part & part) { return part.is_input; });"),
    ("jinja/value.cpp", "bool res = args.get_pos(0)->val_int % args.get_pos(1)->val_int == 0;",
     "bool res = args.get_pos(1)->val_int > 0 && args.get_pos(0)->val_int % args.get_pos(1)->val_int == 0;"),
    ("jinja/runtime.cpp", "value statement::execute(context & ctx) const {",
     "value statement::execute(context & ctx) const {" + DEPTH_GUARD),
)


def download(folder: pathlib.Path) -> pathlib.Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
               "--no-binary", PACKAGE.split("==")[0], "-d", str(folder), "-r", str(requirements)]
    subprocess.run(command, check=True, timeout=900)
    return next(folder.glob("*.tar.gz"))


def check(archive: pathlib.Path) -> None:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"fetch_jinja: {archive} has the SHA-256 {found}, not {SHA256}")


def target_of(member: str) -> str | None:
    path = member.split("vendor/llama.cpp/", 1)[-1]
    for pattern, folder in WANTED:
        match = pattern.fullmatch(path)
        if match and "vendor/llama.cpp/" in member:
            return f"{folder}/{match[1]}"
    return None


def extract(archive: pathlib.Path, folder: pathlib.Path) -> None:
    with tarfile.open(archive) as members:
        for member in members:
            target = target_of(member.name)
            source = members.extractfile(member) if target else None  # nothing for what is no file
            if target is None or source is None:
                continue
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read())


def edit(folder: pathlib.Path) -> None:
    for name, old, new in EDITS:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise SystemExit(f"fetch_jinja: {name} has {text.count(old)} times what an edit replaces: {old}")
        path.write_text(text.replace(old, new), encoding="utf-8")


def stamp() -> str:
    """What the folder's content follows from."""
    return hashlib.sha256(repr((SHA256, WANTED, EDITS)).encode()).hexdigest()


def fetch(folder: pathlib.Path, archive: pathlib.Path | None) -> None:
    mark = folder / "stamp"
    if mark.exists() and mark.read_text() == stamp():
        return
    print(f"Fetching the Jinja engine to {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        temporary = pathlib.Path(name)
        source = archive or download(temporary)
        check(source)
        extract(source, temporary / "jinja")
        edit(temporary / "jinja")
        (temporary / "jinja" / "stamp").write_text(stamp())
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(temporary / "jinja", folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / ".cache" / "jinja")
    parser.add_argument("--archive", type=pathlib.Path, help="the source archive, where it is at hand already")
    arguments = parser.parse_args()
    fetch(arguments.folder, arguments.archive)


if __name__ == "__main__":
    main()
