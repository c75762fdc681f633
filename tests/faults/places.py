"""Where a command can be broken, and how: one call of the system that fails, a disk that is full from a call on, a kill before a
call, one allocation that fails.

Calls of the system are broken by strace, which sees those of every library and of the C library itself; a preloaded
library would miss what fwrite() does. strace counts the calls of each kind by thread, so that a place is a kind and a number. Which
places there are is read from the trace of a command that was left alone.
"""
import dataclasses
import re
import subprocess

# What changes files. Opening counts where it is to write.
CHANGES = ("write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "renameat", "renameat2", "link",
           "mkdir", "unlink", "unlinkat", "rmdir", "fchmod", "close", "openat")
# What a full disk refuses.
NEEDS_ROOM = ("write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "renameat", "renameat2", "mkdir")
LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
# The sentence of a command whose standard error could not be written to either.
LOST_SENTENCE = re.compile(r'^\d+ +write\(2(?:<[^>]*>)?, "((?:[^"\\]|\\.)*)"', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Place:
    """`what` is shown to people, `options` are strace's, `allocation` is the number of the allocation that fails."""
    what: str
    options: tuple = ()
    allocation: int = 0
    kills: bool = False
    standard_output: bool = False


def strace(log, options):
    """The beginning of a command line: strace with its log in a file. (Its quicker way, --seccomp-bpf, cannot send signals.)"""
    quick = [] if any("signal=" in option for option in options) else ["--seccomp-bpf"]
    return ["strace", "-f", "-qq", "-y", "-s", "400", *quick, "-o", str(log), "-e", "trace=" + ",".join(CHANGES), *options]


def why_strace_cannot():
    """A sentence if strace is not there or may not trace, else nothing."""
    try:
        tried = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO:when=1", "true"],
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no strace (a Debian package)"
    return "" if tried.returncode == 0 else f"strace cannot trace here: {tried.stderr.strip()}"


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of the system: which, the how-manyth of its kind in its thread, its arguments."""
    kind: str
    number: int
    arguments: str
    # The how-manyth of each kind the next one would be, at this moment.
    next_numbers: tuple

    def short(self):
        """For people."""
        path = re.search(r'<([^>]*)>|"((?:[^"\\]|\\.)*)"', self.arguments)
        name = (path[1] or path[2] or "").rsplit("/", 1)[-1] if path else ""
        return f"{self.kind} {self.number} ({re.sub(r'tmp-.*', 'tmp', name)})"


def calls_of(log):
    """The calls of a trace, in order. Those that began in one line and ended in another count where they began."""
    counts, calls = {}, []
    for line in open(log, errors="replace"):
        found = LINE.match(line)
        if not found:
            continue
        thread, kind, arguments = found.groups()
        if kind not in CHANGES:
            continue
        number = counts.setdefault(thread, {}).get(kind, 0) + 1
        calls.append(Call(kind, number, arguments, tuple((other, counts[thread].get(other, 0) + 1) for other in NEEDS_ROOM)))
        counts[thread][kind] = number
    return calls


def is_ours(call, folder):
    """Whether a call is about the folder, or about standard output and standard error: the loader and libraries open files, too."""
    named = re.match(r'(?:AT_FDCWD(?:<[^>]*>)?, )?"([^"]*)"', call.arguments)
    if named:
        return ".so" not in named[1] and (not named[1].startswith("/") or named[1].startswith(folder))
    opened = re.match(r"(\d+)<([^>]*)>", call.arguments)
    return opened is not None and (opened[1] in "12" or opened[2].startswith(folder))


def is_change(call):
    """Not the opening of files to read."""
    return call.kind != "openat" or re.search(r"O_WRONLY|O_RDWR|O_CREAT", call.arguments) is not None


def failures(calls, folder):
    """Each call that fails once, and each moment from which on the disk is full."""
    for call in calls:
        if not is_change(call) or not is_ours(call, folder):
            continue
        on_output = re.match(r"1<|1,", call.arguments) is not None and call.kind == "write"
        error = "ENOSPC" if call.kind in ("openat", "mkdir") else "EIO"
        yield Place(f"{call.short()} fails with {error}", ("-e", f"inject={call.kind}:error={error}:when={call.number}"),
                    standard_output=on_output)
        if call.kind in NEEDS_ROOM:
            options = []
            for kind, number in call.next_numbers:
                options += ["-e", f"inject={kind}:error=ENOSPC:when={number}+"]
            yield Place(f"the disk is full from {call.short()} on", tuple(options), standard_output=on_output)


def kills(calls, folder):
    """A kill before each call."""
    for call in calls:
        if not is_ours(call, folder):
            continue
        yield Place(f"killed before {call.short()}", ("-e", f"inject={call.kind}:signal=KILL:when={call.number}"), kills=True)


def allocations(count):
    """Each allocation that fails."""
    for number in range(1, count + 1):
        yield Place(f"allocation {number} of {count} fails", allocation=number)


def spread(places, most):
    """At most so many of them, from the first to the last, at equal distances."""
    places = list(places)
    if len(places) <= most:
        return places
    return [places[round(i * (len(places) - 1) / (most - 1))] for i in range(most)]


def lost_sentences(log):
    """What a command wrote to standard error, or wanted to, by its trace."""
    text = open(log, errors="replace").read()
    return "".join(found.encode().decode("unicode_escape", errors="replace") for found in LOST_SENTENCE.findall(text))


def was_reached(log):
    """Whether strace came to the place."""
    return "(INJECTED)" in open(log, errors="replace").read()
