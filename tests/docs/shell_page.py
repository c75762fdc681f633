"""Runs the shell, Python and file blocks of one page, in order, in one bash.

The bash starts in a fresh folder that looks like the checkout: examples/, scripts/ and the like are copies, so nothing can
be written into the source tree, and build/release/bin/ holds the tested command, which is also on the PATH. Every command
has its own file of output, by which failures are shown and console blocks compared.
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

import commands

# What pages refer to; src/ and include/ are left out because no command reads them.
CHECKOUT = ("bench", "docs", "examples", "scripts", "tests/consumer", "tests/docs", "CMakePresets.json", "README.md")
# Packages that a Python block may import and a machine may lack. Others are the standard library, or a mistake.
OPTIONAL_PACKAGES = ("numpy", "safetensors", "attmirror", "sklearn")
PAGE_SECONDS = 3600 if os.environ.get("ATTMIRROR_NIGHTLY") == "1" else 600


@dataclasses.dataclass
class Result:
    """What became of a page: how many commands ran, (block, why) of what did not, and messages of failures."""

    ran: int = 0
    left_out: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)


class Machine:
    """What this machine can run, asked once."""

    def __init__(self, command):
        self.command = pathlib.Path(command).resolve()
        self.deep = self.command.with_name("attmirror-deep")
        version = subprocess.run([self.command, "--version"], text=True, capture_output=True, check=True).stdout
        self.mpi = shutil.which("mpirun") is not None and re.search(r"\bmpi\b", version) is not None

    def lacks(self, need):
        if need == "deep":
            return "" if self.deep.exists() else "needs attmirror-deep beside the command"
        if need == "mpi":
            return "" if self.mpi else "needs mpirun and a command that is built with MPI"
        return "" if shutil.which(need) else f"needs {need}"

    def reason_against(self, block):
        """Why the block is not run here; empty: it is."""
        if block.skip:
            return block.skip
        if block.nightly and os.environ.get("ATTMIRROR_NIGHTLY") != "1":
            return f"nightly: {block.nightly}"
        for need in block.needs:
            if self.lacks(need):
                return self.lacks(need)
        if block.language == "python":
            for package in OPTIONAL_PACKAGES:
                if re.search(rf"^(import|from) {package}\b", block.text, re.MULTILINE) and not has_package(package):
                    return f"needs Python's {package}"
        return ""


def has_package(name):
    # Imported for real: a package can be there and broken.
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def make_checkout(source, folder, machine):
    for name in CHECKOUT:
        origin, copy = source / name, folder / name
        if not origin.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, copy)
    programs = folder / "build/release/bin"
    programs.mkdir(parents=True)
    (programs / "attmirror").symlink_to(machine.command)
    if machine.deep.exists():
        (programs / "attmirror-deep").symlink_to(machine.deep)


def python_file(block, earlier, state):
    """The block as a file whose line numbers are those of the page; it sees the imports of earlier blocks."""
    imports = [line for other in earlier for line in other.lines if re.match(r"(import|from) \w", line)]
    path = state / f"{pathlib.Path(block.page).stem}-{block.line}.py"
    path.write_text("; ".join(imports) + "\n" * (block.line - 1) + block.text, encoding="utf-8")
    return path


def commands_of_page(blocks, machine, state, result):
    """The commands to run, as Command; blocks that are left out go to the result."""
    todo = []
    python_blocks = []
    for block in blocks:
        if block.language not in ("sh", "console", "python") and not block.file:
            continue
        reason = machine.reason_against(block)
        if reason:
            result.left_out.append((block, reason))
            continue
        if block.before:
            todo.append(commands.Command(block.line, block.before))
        if block.file:
            content = state / f"content-{block.line}"
            content.write_text(block.text, encoding="utf-8")
            todo.append(commands.Command(block.line, f"cp {shlex.quote(str(content))} {shlex.quote(block.file)}"))
        elif block.language == "python":
            path = python_file(block, python_blocks, state)
            todo.append(commands.Command(block.line, f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"))
            python_blocks.append(block)
        else:
            todo += commands.commands_of(block)
    return todo


def script_of(todo, state):
    """One bash script. `at` always holds the number of the command under way."""
    at = shlex.quote(str(state / "at"))
    script = ["set -eo pipefail"]
    for number, command in enumerate(todo):
        output = shlex.quote(str(state / f"output-{number}"))
        script.append(f"echo {number} >{at}")
        if command.fails:
            script += ["set +e", f"( set -e; eval {shlex.quote(command.text)} ) >{output} 2>&1", "status=$?", "set -e",
                       f"if [[ $status -ne {command.fails} ]]; then echo exit code $status, expected {command.fails}"
                       f" >>{output}; exit 1; fi"]
        else:
            # eval, so that `a && b` fails if a does: in a script of its own bash -e overlooks that.
            script.append(f"eval {shlex.quote(command.text)} >{output} 2>&1")
    script.append(f"echo {len(todo)} >{at}")
    return "\n".join(script) + "\n"


def environment(folder, state):
    values = dict(os.environ)
    values.update(
        PATH=f"{folder / 'build/release/bin'}{os.pathsep}{values.get('PATH', '')}", TMPDIR=str(state), LC_ALL="C.UTF-8",
        # Open MPI refuses to start as root, and more processes than cores, unless told otherwise; and processes that wait
        # would take the cores from those that compute.
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_mpi_yield_when_idle="1")
    return values


def run_bash(script, folder, state):
    """Whether it ended by itself. What it started ends with it, also when this program is told to."""
    bash = subprocess.Popen(["bash", "-c", script], cwd=folder, env=environment(folder, state), stdin=subprocess.DEVNULL,
                            start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        bash.wait(timeout=PAGE_SECONDS)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        if bash.poll() is None:
            os.killpg(bash.pid, signal.SIGKILL)
            bash.wait()


def describe(page, command, why, output):
    shown = "".join(f"\n    {line}" for line in output[-30:])
    return f"{page}:{command.line}: {why}\n  $ {command.text}{shown}"


def run_page(page, blocks, source, machine):
    result = Result()
    with tempfile.TemporaryDirectory(prefix="attmirror-docs-") as temporary:
        folder, state = pathlib.Path(temporary, "checkout"), pathlib.Path(temporary, "state")
        folder.mkdir()
        state.mkdir()
        todo = commands_of_page(blocks, machine, state, result)
        if not todo:
            return result
        make_checkout(pathlib.Path(source), folder, machine)
        ended = run_bash(script_of(todo, state), folder, state)
        result.ran = int((state / "at").read_text(encoding="utf-8"))
        for number, command in enumerate(todo[:result.ran + 1]):
            output_file = state / f"output-{number}"
            output = output_file.read_text(encoding="utf-8", errors="replace").splitlines() if output_file.exists() else []
            if number == result.ran:
                why = "the command failed" if ended else f"the page took more than {PAGE_SECONDS} seconds"
                result.failures.append(describe(page, command, why, output))
            elif command.output is not None and not commands.outputs_agree(command.output, output, command.about):
                result.failures.append(describe(page, command, "the page shows other output than the command has:", output))
    return result
