"""What lies in a folder, without what no two runs have in common: clock times, and where the folder is."""
import hashlib
import os
import pathlib
import re
import shutil
import sqlite3
import tempfile
import zipfile

# "seconds": 0.0123 of JSON.
CLOCK_TIME = re.compile(rb'("[a-z_]*seconds[a-z_]*":\s*)[-+0-9.eE]+')
# "in 0.3 ms" of pages, and the seconds of an experiment: after its verdicts in tables, under their name on its page.
SHOWN_TIME = re.compile(rb"\b[0-9.]+ (?:ms|s|seconds)\b|(?<=<dt>seconds</dt><dd>)[0-9.]+")
EXPERIMENT_TIME = re.compile(rb"(reproduced, \d+ new[^0-9]{1,60})[0-9.]+")


def is_leftover(name):
    """Whether a file is the unfinished one of a writer that was killed, or a part of SQLite's log."""
    return ".tmp-" in name or name.endswith(("-wal", "-shm", "-journal"))


def archive_content(path):
    """The arrays of an .npz file."""
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            return b"damaged"
        return b"".join(name.encode() + b"\0" + archive.read(name) for name in sorted(archive.namelist()) if name != "seconds.npy")


def database_content(path):
    """All rows of the results of a sweep, and what SQLite thinks of the file. A copy is read: reading would clear the log away."""
    with tempfile.TemporaryDirectory() as place:
        for part in path.parent.glob(path.name + "*"):
            if not part.name.endswith("-shm"):
                shutil.copy(part, place)
        return rows_of(pathlib.Path(place) / path.name)


def rows_of(path):
    """Every table without its clock times."""
    if path.stat().st_size == 0:
        return b"empty"
    database = sqlite3.connect(path)
    try:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        if not tables:
            return b"empty"
        parts = [database.execute("PRAGMA integrity_check").fetchone()]
        for table in tables:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] not in ("seconds", "finished")]
            names = ", ".join(f'"{column}"' for column in columns)
            parts += sorted(map(repr, database.execute(f"SELECT {names} FROM {table}")))
        return repr(parts).encode()
    finally:
        database.close()


def content(path, folder):
    """What counts of a file."""
    try:
        if path.suffix == ".npz":
            return archive_content(path)
        if path.suffix == ".db":
            return database_content(path)
    except (zipfile.BadZipFile, sqlite3.DatabaseError) as error:
        return f"damaged: {error}".encode()
    text = path.read_bytes().replace(os.fsencode(folder), b"FOLDER")
    if path.suffix in (".json", ".jsonl"):
        text = CLOCK_TIME.sub(rb"\1TIME", text)
    if path.suffix in (".html", ".csv", ".tex"):
        text = EXPERIMENT_TIME.sub(rb"\1TIME", SHOWN_TIME.sub(b"TIME", text))
    return text


def snapshot(folder):
    """Digests by name, the names of leftovers left out; folders have the digest "folder"."""
    folder = pathlib.Path(folder)
    found = {}
    for path in sorted(folder.rglob("*")):
        if is_leftover(path.name):
            continue
        name = str(path.relative_to(folder))
        found[name] = "folder" if path.is_dir() else hashlib.sha256(content(path, folder)).hexdigest()[:16]
    return found


def leftovers(folder):
    """Unfinished files, which only a killed process may leave."""
    return sorted(path.name for path in pathlib.Path(folder).rglob("*") if ".tmp-" in path.name)


def difference(wanted, found):
    """A few words about the first names in which two snapshots differ."""
    names = [name for name in sorted({*wanted, *found}) if wanted.get(name) != found.get(name)]
    words = [f"{name} is {'missing' if name not in found else 'not expected' if name not in wanted else 'another'}" for name in names]
    return ", ".join(words[:4])
