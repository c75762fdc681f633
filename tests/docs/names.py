"""Names in blocks that nobody runs: the files, presets, targets, options and packages must exist all the same."""

import json
import re

PATH = re.compile(r"(?<![\w./-])(?:scripts|examples|bench|tests|docs|cmake)/[\w./-]*\w")


class Names:
    """What the source tree defines, read from its CMake files, presets and set-up script."""

    def __init__(self, source):
        self.source = source
        cmake = "\n".join(path.read_text(encoding="utf-8") for path in self.cmake_files())
        self.targets = set(re.findall(r"add_(?:executable|library|custom_target)\(\s*(\w+)", cmake))
        self.targets |= {"attmirror_bench_" + room for room in re.findall(r"attmirror_add_benchmarks\(\s*(\w+)", cmake)}
        self.targets |= set(re.findall(r"OUTPUT_NAME\s+\"?([\w-]+)", cmake))
        self.components = set(re.findall(r"attmirror::(\w+) ALIAS", cmake))
        self.options = set(re.findall(r"\b(?:ATTMIRROR|BUILD|CMAKE)_\w+", cmake))
        self.version = re.search(r"project\(attmirror VERSION (\d+\.\d+)", cmake)[1]
        presets = json.loads((source / "CMakePresets.json").read_text(encoding="utf-8"))
        self.presets = {preset["name"] for kind in ("configurePresets", "buildPresets", "testPresets")
                        for preset in presets[kind] if not preset.get("hidden")}
        self.packages = set((source / "scripts/setup.sh").read_text(encoding="utf-8").replace(")", " ").replace("(", " ").split())

    def cmake_files(self):
        yield self.source / "CMakeLists.txt"
        for folder in ("src", "tests", "bench", "examples", "cmake"):
            yield from sorted((self.source / folder).rglob("CMakeLists.txt"))
            yield from sorted((self.source / folder).rglob("*.cmake"))

    def missing(self, block):
        """Sentences about names in the block that do not exist."""
        text = re.sub(r"\\\n", " ", block.text)
        text = re.sub(r"(^|\s)#.*", r"\1", text, flags=re.MULTILINE) if block.language == "sh" else text
        wrong = []

        def check(kind, found, known):
            wrong.extend(f'{block.place}: there is no {kind} "{name}"' for name in found if name not in known)

        if block.language in ("sh", "console"):
            wrong += [f'{block.place}: there is no file "{path}"' for path in PATH.findall(text)
                      if not (self.source / path).exists()]
            check("preset", re.findall(r"--preset[ =](\S+)", text), self.presets)
            for words in re.findall(r"--target((?: +\w+)+)", text):
                check("target", words.split(), self.targets)
            presets = "|".join(self.presets)
            check("program", re.findall(rf"build/(?:{presets})/bin/([\w-]+)", text), self.targets)
            check("CMake option", re.findall(r"-D([A-Z]\w+)=", text), self.options)
            for words in re.findall(r"apt-get install((?: +[\w.+-]+)+)", text):
                check("package in scripts/setup.sh", [word for word in words.split() if not word.startswith("-")], self.packages)
        elif block.language == "cmake":
            check("component", re.findall(r"attmirror::(\w+)", text), self.components)
            for words in re.findall(r"COMPONENTS((?: +\w+)+)", text):
                check("component", words.split(), self.components)
            check("version", re.findall(r"find_package\(attmirror (\d[\d.]*)", text), {self.version})
        return wrong
