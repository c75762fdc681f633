"""The pages of every kind of result in headless Chromium: chromium_test.py ATTMIRROR.

The command makes a reproduction, runs, a path, a sweep, a max-margin solution, a next-token run and, from a folder as
`attmirror deep train` leaves it, a training. Each page is looked at as a reader would: at 1400 and at 390 pixels, light
and dark. Nothing may overlap, be cut off, or be named by a column of a file. Exits with 77 and a line that says why where
Chromium, its driver or Selenium is missing.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True  # leave the source tree as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from chromium import PageTest, start_browser

ATTMIRROR = sys.argv.pop(1)

SWEEP = """
[train]
normalized = true
steps = 300
[grid]
p = [1.75, 2, 3]
lr = [0.044721359549995794, 0.1]
seed = "1:3"
[record]
solutions = ["own"]
curves = ["loss", "own.bregman"]
"""

# Columns and keys of files, which people should not have to read.
RAW_NAMES = re.compile(
    r"\b\w+\.(bregman|gap|correlation|margin_ratio|support|all_support|local)\b"
    r"|\b(final_loss|max_softmax|weight_norm|weight_rank|run_status|steps_taken|margin_ratio|direction_W_\w+|norm_W_\w+)\b"
    r"|\bunseen_accuracy\b|\babove_0")


def write_training(folder):
    """As `attmirror deep train` leaves it: two trials of three epochs."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "format": "attmirror deep training", "format_version": 1, "data": {"train": "train.tsv"},
        "model": {"kind": "encoder", "blocks": 2, "heads": 3, "width": 48},
        "optimizer": {"name": "md", "p": 1.1, "lr": 0.044721359549995794}, "train": {"trials": 2}}))
    lines = []
    for trial in range(2):
        for epoch in range(1, 4):
            lines.append({"trial": trial, "epoch": epoch, "step": 10 * epoch, "train_loss": 0.7 / epoch,
                          "train_accuracy": 0.5 + 0.1 * epoch, "test_loss": 0.8 / epoch,
                          "test_accuracy": 0.5 + 0.09 * epoch + 0.01 * trial, "seconds": 60 * epoch, "weight_norm": 3,
                          **{block: {"norm": 1, "largest": 0.5, "above_0.06": 0.25 / epoch, "sparsity": 0.1 * epoch}
                             for block in "KQV"}})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


class Pages(PageTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attmirror-pages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)

        def attmirror(*words, code=0):
            done = subprocess.run([ATTMIRROR, *words], cwd=cls.folder, capture_output=True, text=True)
            if done.returncode != code:
                raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")

        attmirror("reproduce", "all", "--quick", "--quiet", "-o", "quick", code=1)
        attmirror("generate", "--seed", "1", "-o", "data.npz", "--quiet")
        lr = ["--lr", "0.044721359549995794"]
        for p in ["1.75", "2", "3"]:
            attmirror("train", "data.npz", "--p", p, "--normalized", "--steps", "2000", *lr, "-o", f"run-{p}", "--quiet")
        attmirror("path", "data.npz", "--radii", "1:1e4:9", "-o", "path", "--quiet")
        attmirror("margin", "data.npz", "-o", "svm.npz", "--quiet")
        attmirror("next-token", "--ov-steps", "300", "--steps", "600", "-o", "next", "--quiet")
        (cls.folder / "sweep.toml").write_text(SWEEP)
        attmirror("sweep", "sweep.toml", "-o", "sweep.db", "--quiet")
        write_training(cls.folder / "training")
        shutil.copy(cls.folder / "quick/report.html", cls.folder / "reproduction.html")
        for name, sources in {"run": ["run-1.75"], "runs": ["run-1.75", "run-2", "run-3"], "path": ["path"],
                              "solution": ["svm.npz"], "next-token": ["next"], "sweep": ["sweep.db"],
                              "training": ["training"]}.items():
            attmirror("report", *sources, "-o", f"{name}.html", "--quiet")
        cls.kinds = ["reproduction", "run", "runs", "path", "solution", "next-token", "sweep", "training"]
        (cls.folder / "profile").mkdir()
        cls.browser = start_browser(cls.folder / "profile")
        cls.addClassCleanup(cls.browser.quit)

    # ---- helpers

    def open(self, kind, width, scheme="light"):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        self.cdp("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.browser.get(f"file://{self.folder}/{kind}.html")
        self.js("document.documentElement.style.scrollBehavior = 'auto';"
                "document.querySelectorAll('details').forEach(one => one.open = true)")

    def draw(self, names=None):
        """Scrolls to these figures, or to all, which draws them where Plotly is built in. Returns whether it is."""
        if not self.js("return !!window.Plotly"):
            return False
        for name in names or self.js("return [...document.querySelectorAll('figure')].map(one => one.id)"):
            self.js("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", name)
            end = time.monotonic() + 20
            while not self.js("return !!document.querySelector(`#${arguments[0]} .plot svg.main-svg .xtick`)", name):
                self.assertLess(time.monotonic(), end, f"{name} is not drawn")
                time.sleep(0.03)
        return True

    def each(self, check, widths=(1400, 390)):
        for kind in self.kinds:
            for width in widths:
                with self.subTest(kind=kind, width=width):
                    self.open(kind, width)
                    check(kind)

    # ---- what a page says

    def test_each_page_opens_with_a_computed_conclusion(self):
        def check(kind):
            place = self.js("""
                const one = document.querySelector('main > .conclusion');
                return one && [one.textContent, [...document.querySelector('main').children].indexOf(one)]""")
            self.assertIsNotNone(place)
            self.assertEqual(place[1], 0, "something stands before it")
            self.assertRegex(place[0], r"\d", "it names no number")
            self.assertRegex(place[0], r"^[A-Z0-9].*\.$")
            self.assertLess(len(place[0]), 330, place[0])

        self.each(check, widths=(1400,))

    def test_papers_are_introduced_where_they_are_cited(self):
        def check(kind):
            text = self.js("return [...document.querySelectorAll('section')].map(one => one.textContent).join(' ')")
            cited = sorted(set(re.findall(r"\bP[1-4]\b", re.sub(r"\s+", " ", text))))
            listed = self.js("return [...document.querySelectorAll('dl.papers dt')].map(one => one.textContent)")
            self.assertTrue(set(cited) <= set(listed) or not cited, f"{cited} and {listed}")
            if kind == "reproduction":
                self.assertEqual(listed, ["P1", "P2", "P3", "P4"])
                self.assertIn("Huang", self.js("return document.querySelector('dl.papers').textContent"))

        self.each(check, widths=(1400,))

    def test_no_column_names_and_no_idle_digits(self):
        def check(kind):
            # What people read, commands and files apart.
            text = self.js("""
                const copy = document.body.cloneNode(true);
                copy.querySelectorAll('script, style, pre, code, .static').forEach(one => one.remove());
                copy.querySelectorAll('td, th').forEach(one => one.append(' '));  // two cells are not one number
                const drawings = [...document.querySelectorAll('.static svg text')].map(one => one.textContent);
                return copy.textContent + ' ' + drawings.join(' ')""")
            self.assertEqual(RAW_NAMES.findall(text), [])
            self.assertEqual(re.findall(r"\d\.\d{10,}", text), [], "digits that mean nothing")
            self.assertNotIn("normalis", text)

        self.each(check, widths=(1400,))

    def test_mathematics_is_set(self):
        self.open("reproduction", 1400)
        text = self.js("""
            const copy = document.querySelector('main').cloneNode(true);
            copy.querySelectorAll('script, pre, code, svg > title, svg > desc').forEach(one => one.remove());
            return copy.textContent""")
        self.assertEqual(re.findall(r"\bW_\w+|\)\^.|\bK Q\^T|\bW\^\w+", text), [])
        self.assertGreater(self.js("return document.querySelectorAll('main sub').length"), 50)
        self.assertGreater(self.js("return document.querySelectorAll('.static svg tspan').length"), 10)

    def test_every_figure_has_a_title_named_axes_and_a_computed_sentence(self):
        def check(kind):
            for name, title, caption, axes in self.js("""
                    return [...document.querySelectorAll('figure')].map(one => [one.id, one.querySelector('h3').textContent,
                      (one.querySelector('figcaption > p') || {textContent: ''}).textContent,
                      [...one.querySelectorAll('.static svg text')].map(text => text.textContent).join(' | ')])"""):
                self.assertGreater(len(title), 15, name)
                self.assertRegex(caption, r"\d", f"{name}: {caption}")
                self.assertRegex(axes, r"[a-z]{3}", name)

        self.each(check, widths=(1400,))

    def test_quick_versions_say_what_they_sampled(self):
        self.open("reproduction", 1400)
        text = self.js("return document.getElementById('p1-setting-a').textContent")
        self.assertIn("12 data sets with 1 random start each", text)
        self.assertIn("Smoke test", text)
        self.assertNotIn("100 data sets", text)
        self.assertIn("smoke test", self.js("return document.querySelector('.subtitle').textContent"))
        self.assertGreater(self.js("return document.querySelectorAll('td .verdict.open').length"), 10, "inconclusive")

    def test_mismatches_come_first_and_marks_are_explained(self):
        self.open("reproduction", 1400)
        order = ["bad", "caution", "open", "good", "neutral"]
        for name, tones in self.js("""
                return [...document.querySelectorAll('[id$=-findings]')].map(table => [table.id,
                  [...table.querySelectorAll('td .verdict')].map(one => one.classList[1])])"""):
            self.assertEqual(tones, sorted(tones, key=order.index), name)
            legend = self.js("return [...document.querySelectorAll(`#${arguments[0]} .legend .verdict`)]"
                             ".map(one => one.classList[1])", name)
            self.assertEqual(set(legend), set(tones), name)
        self.assertIn("artefact of the original",
                      self.js("return document.querySelector('#table_overview-table .legend').textContent"))

    # ---- how it looks

    def test_nothing_is_wider_than_the_screen(self):
        def check(kind):
            if kind != "reproduction":  # all of its figures are drawn by report.chromium
                self.draw()
            self.assertLessEqual(self.js("return document.documentElement.scrollWidth - innerWidth"), 0)

        self.each(check)

    def test_no_table_of_results_is_clipped_on_a_wide_screen(self):
        def check(kind):
            clipped = self.js("""
                return [...document.querySelectorAll('.table')].map(one => [one.id, one.querySelector('.scroll')])
                  .filter(([, scroll]) => scroll.scrollWidth > scroll.clientWidth + 1).map(([id]) => id)""")
            self.assertEqual(clipped, [])

        self.each(check, widths=(1400,))

    def test_verdicts_are_on_a_narrow_screen(self):
        for scheme in ["light", "dark"]:
            self.open("reproduction", 390, scheme)
            outside = self.js("""
                return [...document.querySelectorAll('.cards td .verdict')].filter(one => {
                  const box = one.getBoundingClientRect();
                  return box.width === 0 || box.left < 0 || box.right > innerWidth;
                }).length""")
            self.assertEqual(outside, 0)
            first = self.js("""
                const row = document.querySelector('[id$=-findings] tbody tr');
                const cells = [...row.children].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
                return cells[0].className""")
            self.assertEqual(first, "marked", "the verdict is not the first thing of its row")

    def test_numbers_and_names_of_heat_maps_do_not_overlap(self):
        self.open("reproduction", 390)
        if not self.js("return !!window.Plotly"):
            self.skipTest("Plotly is not built in")
        maps = self.js("""
            return [...document.querySelectorAll('figure')].filter(
              one => one.querySelector('script.plotly').textContent.includes('"heatmap"')).map(one => one.id)""")
        self.assertIn("figure_which-margin-which-margin", maps)
        for scheme in ["light", "dark"]:
            self.open("reproduction", 390, scheme)
            self.draw(maps)
            for name in maps:
                self.js("document.getElementById(arguments[0]).scrollIntoView({block: 'start'})", name)
                texts = self.js("""
                    const figure = document.getElementById(arguments[0]);
                    const plot = figure.querySelector('.plot').getBoundingClientRect();
                    return [...figure.querySelectorAll('.annotation-text, .xtick text, .ytick text')].map(one => {
                      const box = one.getBoundingClientRect();
                      return [one.textContent, box.left, box.top, box.right, box.bottom, plot.left];
                    }).filter(one => one[0].trim())""", name)
                self.assertGreater(len(texts), 5, name)
                self.assertFalse([text for text, *_ in texts if "…" in text], "names are cut")
                for i, (one, l1, t1, r1, b1, left) in enumerate(texts):
                    self.assertGreaterEqual(l1, left - 1, f"{name}: {one} is cut off on the left")
                    for other, l2, t2, r2, b2, _ in texts[i + 1:]:
                        wide, high = min(r1, r2) - max(l1, l2), min(b1, b2) - max(t1, t2)
                        self.assertFalse(wide > 1 and high > 2, f"{name}: “{one}” and “{other}” overlap")

    # ---- what figures show

    def figure(self, name):
        return self.js("""
            const one = document.querySelector(`#figure_${arguments[0]} script.plotly`);
            return one && JSON.parse(one.textContent)""", name)

    def curves(self, name):
        spec = self.figure(name)
        if spec is None:
            self.skipTest("Plotly is not built in")
        return [trace for trace in spec["data"] if trace["role"] == "curve"]

    def test_rounding_sets_no_axis(self):
        self.open("reproduction", 1400)
        for name in ["p4-joint-ov-one-hot", "p4-joint-ov-gaussian", "paths-relaxed", "paths-distances"]:
            values = [y for curve in self.curves(name) for y in curve["y"] if y]
            self.assertGreater(min(values), 1e-14, name)
        # A curve of one point among lines would have to be explained.
        self.assertTrue(all(len([y for y in curve["y"] if y]) > 1 for curve in self.curves("paths-relaxed")))
        self.open("sweep", 1400)
        titles = self.js("return [...document.querySelectorAll('figure h3')].map(one => one.textContent)")
        self.assertFalse([title for title in titles if "gap" in title])

    def test_planes_are_filled_by_what_they_show(self):
        self.open("reproduction", 1400)
        self.curves("landscape-basins")
        planes = ["landscape-basins", "p2-single-input-unequal", "p2-multi-input-paths"]
        self.draw([f"figure_{name}" for name in planes])
        for name in planes:
            share = self.js("""
                const {xaxis, yaxis} = document.querySelector(`#figure_${arguments[0]} .plot`)._fullLayout;
                const data = document.querySelector(`#figure_${arguments[0]} .plot`).data;
                const span = key => {
                  const all = data.flatMap(trace => trace[key]).filter(Number.isFinite);
                  return Math.max(...all) - Math.min(...all);
                };
                return [span('x') / (xaxis.range[1] - xaxis.range[0]), span('y') / (yaxis.range[1] - yaxis.range[0])]""", name)
            self.assertGreater(min(share), 0.75, f"{name} has empty sides")

    def test_curves_of_equal_scores_go_where_the_title_says(self):
        self.open("reproduction", 1400)
        curves = self.curves("p2-single-input-equal")
        self.assertEqual(len(curves), 6)
        for curve in curves:
            values = [y for y in curve["y"] if y]
            self.assertLess(values[-1], 0.01, curve["name"])

    def test_norms_of_different_geometries_have_figures_of_their_own(self):
        self.open("runs", 1400)
        names = self.js("return [...document.querySelectorAll('figure[id^=figure_runs-norm]')].map(one => one.id)")
        self.assertEqual(len(names), 3)
        for name in names:
            self.assertEqual(len(self.curves(name[len("figure_"):])), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
