"""The page in headless Chromium, with a real mouse and a real keyboard: chromium_test.py PAGE_PROGRAM [ATTMIRROR].

PAGE_PROGRAM writes the example page with and without Plotly into a folder. With the command ATTMIRROR the page of
`attmirror reproduce all --quick` is gone through as well. Exits with 77 and a line that says why where
Chromium, its driver or Selenium is missing, or where Plotly is not built in (then the static page is tested first).
"""
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True  # leave the source tree as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from chromium import PageTest, skip, start_browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

FIGURES = ["rates", "points", "plane", "heat", "odd"]
PROGRAM = sys.argv.pop(1)
ATTMIRROR = sys.argv.pop(1) if len(sys.argv) > 1 else None


class Browser(PageTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attmirror-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([PROGRAM, cls.folder], check=True)
        cls.interactive = (cls.folder / "interactive.html").exists()
        (cls.folder / "profile").mkdir()
        (cls.folder / "downloads").mkdir()
        cls.browser = start_browser(cls.folder / "profile")
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        super().setUp()
        self.media()

    # ---- helpers

    def media(self, scheme="light", medium=""):
        self.cdp("Emulation.setEmulatedMedia", media=medium,
                 features=[{"name": "prefers-color-scheme", "value": scheme}])

    def until(self, question, what, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = question()
            if answer:
                return answer
            time.sleep(0.03)
        self.fail(f"waited {seconds} s in vain: {what}")

    def open(self, name="interactive"):
        if name == "interactive" and not self.interactive:
            self.skipTest("Plotly is not built in")
        self.browser.get(f"file://{self.folder}/{name}.html")
        self.js("try { sessionStorage.clear() } catch {}; delete document.documentElement.dataset.theme")
        self.js("document.documentElement.style.scrollBehavior = 'auto'")

    def unfold(self):
        self.js("document.querySelectorAll('details.folded').forEach(one => one.open = true)")

    def draw(self, name):
        """Scrolls to the figure, which draws it."""
        self.js("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", f"figure_{name}")
        return self.until(lambda: self.js("""
            const place = document.querySelector(`#figure_${arguments[0]} .plot`);
            return place && place.data && place.querySelector('svg.main-svg .xtick') ? place : null""", name),
            f"figure {name} is drawn")

    def spot(self, name, x, y):
        """Where in the window (x, y) of a figure is, in shares of the area between its axes."""
        return self.js("""
            const place = document.querySelector(`#figure_${arguments[0]} .plot`);
            const box = place.getBoundingClientRect(), {xaxis, yaxis} = place._fullLayout;
            return [box.left + xaxis._offset + arguments[1] * xaxis._length,
                    box.top + yaxis._offset + arguments[2] * yaxis._length]""", name, x, y)

    def mouse(self, *steps):
        """Steps: (x, y) to move to, "down", "up", or a number of seconds."""
        actions = ActionBuilder(self.browser, duration=20)
        for step in steps:
            if step == "down":
                actions.pointer_action.pointer_down()
            elif step == "up":
                actions.pointer_action.pointer_up()
            elif isinstance(step, (int, float)):
                actions.pointer_action.pause(step)
            else:
                actions.pointer_action.move_to_location(round(step[0]), round(step[1]))
        actions.perform()

    def click(self, element):
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.browser, duration=20).move_to_element(element).click().perform()

    def overflow(self):
        return self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def smallest_text(self):
        """Size on the screen of the smallest text; exponents aside."""
        return self.js("""
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            let smallest = [999, ''];
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
              const parent = node.parentElement;
              if (!node.data.trim() || ['SCRIPT', 'STYLE', 'TITLE', 'DESC', 'NOSCRIPT'].includes(parent.nodeName.toUpperCase())) continue;
              if (!parent.checkVisibility() || parent.style.fontSize === '70%') continue;
              const svg = parent.closest('svg');
              const scale = svg ? parent.closest('text').getScreenCTM().a || parent.closest('text').getScreenCTM().b : 1;
              const size = parseFloat(getComputedStyle(parent).fontSize) * Math.abs(scale);
              if (size < smallest[0]) smallest = [size, node.data];
            }
            return smallest""")

    # ---- the interactive page

    def test_every_figure_is_drawn_and_says_what_is_under_the_mouse(self):
        self.open()
        self.assertLess(len(self.js("return [...document.querySelectorAll('.plot')].filter(one => one.data)")), 5,
                        "figures far down are drawn before they are needed")
        self.unfold()
        places = {"heat": (0.5, 0.1, "0.051"), "plane": None, "rates": None, "points": None, "odd": None}
        for name in FIGURES:
            self.draw(name)
            self.assertGreater(self.js(
                "return document.querySelectorAll(`#figure_${arguments[0]} svg.main-svg path`).length", name), 5)
            self.assertFalse(self.js(
                "return document.querySelector(`#figure_${arguments[0]} .static`).checkVisibility()", name))
            if places[name]:
                x, y, expected = places[name]
                target = self.spot(name, x, y)
            else:  # a point of the first curve
                expected = self.js("""
                    const place = document.querySelector(`#figure_${arguments[0]} .plot`);
                    return place.data.find(trace => trace.role !== 'band' && trace.name).name""", name)
                target = self.js("""
                    const place = document.querySelector(`#figure_${arguments[0]} .plot`);
                    const curve = place.calcdata.find(points => points[0].trace.name === arguments[1])
                      .filter(point => Number.isFinite(point.x) && Number.isFinite(point.y));
                    const {xaxis, yaxis} = place._fullLayout, box = place.getBoundingClientRect();
                    const point = curve[Math.floor(curve.length / 3)];
                    return [box.left + xaxis._offset + xaxis.c2p(point.x), box.top + yaxis._offset + yaxis.c2p(point.y)]""",
                                 name, expected)
            self.mouse((5, 5), (target[0] - 3, target[1]), target)
            said = self.until(lambda: self.js("""
                return [...document.querySelectorAll(`#figure_${arguments[0]} .hoverlayer .hovertext`)]
                  .map(one => one.textContent).join(' ')""", name), f"a label in {name}")
            self.assertIn(expected.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"), said)

    def test_every_figure_of_a_reproduction_reacts(self):
        if not ATTMIRROR:
            return  # a build without the command; the other tests are about the page itself
        done = subprocess.run([ATTMIRROR, "reproduce", "all", "--quick", "--quiet", "-o", self.folder / "quick"])
        self.assertIn(done.returncode, (0, 1))
        shutil.copy(self.folder / "quick" / "report.html", self.folder / "interactive-reproduction.html")
        if not self.interactive:
            return
        self.open("interactive-reproduction")
        self.unfold()
        names = self.js("return [...document.querySelectorAll('figure[id^=figure_]')].map(one => one.id.slice(7))")
        self.assertGreater(len(names), 20)
        for name in names:
            self.draw(name)
            # The point of all curves that is nearest to the middle, or a cell of a heat map.
            target = self.js("""
                const place = document.querySelector(`#figure_${arguments[0]} .plot`);
                const {xaxis, yaxis} = place._fullLayout, box = place.getBoundingClientRect();
                const left = box.left + xaxis._offset, top = box.top + yaxis._offset;
                if (place.data[0].type === 'heatmap') return [left + 0.05 * xaxis._length, top + 0.05 * yaxis._length];
                let best = null, least = Infinity;
                for (const points of place.calcdata) {
                  if (points[0].trace.hoverinfo === 'skip') continue;
                  for (const point of points) {
                    const x = xaxis.c2p(point.x), y = yaxis.c2p(point.y);
                    const distance = Math.hypot(x / xaxis._length - 0.5, y / yaxis._length - 0.5);
                    if (distance < least) { least = distance; best = [left + x, top + y]; }
                  }
                }
                return best""", name)
            self.assertIsNotNone(target, name)
            self.mouse((5, 5), (target[0] - 3, target[1]), target)
            self.until(lambda: self.js(
                "return document.querySelectorAll(`#figure_${arguments[0]} .hoverlayer .hovertext`).length", name),
                f"a label in {name}")
        self.cdp("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        self.assertLessEqual(self.overflow(), 0)
        self.media("dark")
        self.until(lambda: self.js(
            "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(part => part < 60)"), "a dark page")

    def test_legend_toggles_and_drag_zooms(self):
        self.open()
        self.draw("rates")
        visible = lambda: self.js(
            "return document.querySelector('#figure_rates .plot')._fullData.map(trace => trace.visible)")
        self.assertEqual(set(map(str, visible())), {"True"})
        toggle = self.js("return document.querySelector('#figure_rates .legendtoggle')")
        box = self.js("const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]", toggle)
        self.mouse(box, "down", "up")
        self.until(lambda: visible().count("legendonly") == 2, "the curve and its band are hidden")
        time.sleep(0.4)  # two clicks sooner are a double click
        self.mouse(box, "down", "up")
        self.until(lambda: visible().count("legendonly") == 0, "they are back")

        ranges = lambda: self.js("""
            const layout = document.querySelector('#figure_rates .plot')._fullLayout;
            return [layout.xaxis.range, layout.yaxis.range]""")
        before = ranges()
        self.mouse(self.spot("rates", 0.3, 0.3), "down", self.spot("rates", 0.45, 0.5), self.spot("rates", 0.6, 0.7), "up")
        self.until(lambda: ranges() != before, "a drag zooms")
        (x0, x1), (y0, y1) = ranges()
        (a0, a1), (b0, b1) = before
        self.assertAlmostEqual((x1 - x0) / (a1 - a0), 0.3, delta=0.03)
        self.assertAlmostEqual((y1 - y0) / (b1 - b0), 0.4, delta=0.04)
        time.sleep(0.4)
        centre = self.spot("rates", 0.5, 0.5)
        self.mouse(centre, "down", "up", "down", "up")
        self.until(lambda: ranges() == before, "a double click shows all again")

    def test_what_counts_has_whole_ticks_alone(self):
        self.open()
        self.unfold()
        self.draw("odd")
        ticks = lambda: self.js(
            "return [...document.querySelectorAll('#figure_odd .plot .xtick text')].map(one => one.textContent)")
        zoom = lambda low, high: self.js(
            "Plotly.relayout(document.querySelector('#figure_odd .plot'), {'xaxis.range': [arguments[0], arguments[1]]})",
            low, high)
        self.until(lambda: set(ticks()) <= set("01234567"), "whole numbers")
        zoom(2.5, 4.5)
        self.until(lambda: ticks() == ["3", "4"], "whole numbers after a zoom")
        zoom(0, 400)
        self.until(lambda: "200" in ticks() and len(ticks()) < 12, "not every number of many")

    def test_dark_by_the_screen_and_by_the_button(self):
        self.open()
        self.draw("rates")
        colors = lambda: self.js("""
            const style = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
            return [style('body', 'backgroundColor'), style('#figure_rates .xtitle', 'fill'),
                    style('#figure_rates .scatterlayer .trace:last-child .js-line', 'stroke'), style('p', 'color')]""")
        light = colors()
        self.media("dark")
        dark = self.until(lambda: (lambda now: now if all(a != b for a, b in zip(now, light)) else None)(colors()),
                          "everything is dark")
        button = self.browser.find_element(By.ID, "theme")
        self.click(button)
        self.until(lambda: colors() == light, "the button makes it light")
        self.assertEqual(button.get_attribute("aria-pressed"), "false")
        self.click(button)
        self.until(lambda: colors() == dark, "and dark again")
        self.media("light")
        time.sleep(0.1)
        self.assertEqual(colors(), dark, "the reader's choice counts more than the screen's")

    def test_a_phone(self):
        self.cdp("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        self.open()
        self.unfold()
        for name in FIGURES:
            self.draw(name)
        self.assertLessEqual(self.overflow(), 0)
        self.assertEqual(self.js("return innerWidth"), 390)
        size, text = self.smallest_text()
        self.assertGreaterEqual(size, 11.99, text)
        table = self.browser.find_element(By.CSS_SELECTOR, ".scroll")
        self.assertGreater(self.js("return arguments[0].scrollWidth - arguments[0].clientWidth", table), 50)

    def test_keyboard(self):
        self.open()
        reached = []
        for _ in range(80):
            ActionChains(self.browser, duration=0).send_keys(Keys.TAB).perform()
            now = self.js("""
                const one = document.activeElement;
                return one === document.body ? null
                  : [one.id || one.className || one.nodeName, getComputedStyle(one).outlineStyle, one.nodeName]""")
            if now is None:
                break
            reached.append(now)
        names = [one[0] for one in reached]
        self.assertEqual(names[:2], ["skip", "theme"])
        for wanted in ["scroll", "copy needs-script", "save needs-script", "save", "anchor", "SUMMARY", "A"]:
            self.assertIn(wanted, names)
        self.assertEqual([one for one in reached if one[1] == "none"], [], "focus that cannot be seen")

    def test_screen_readers_are_told_what_each_figure_is(self):
        self.open()
        self.unfold()
        for name in FIGURES:
            self.draw(name)
        self.cdp("Accessibility.enable")
        nodes = self.cdp("Accessibility.getFullAXTree")["nodes"]
        named = collections.defaultdict(list)
        for node in nodes:
            if not node.get("ignored"):
                named[node["role"]["value"]].append(node.get("name", {}).get("value", ""))
        self.cdp("Accessibility.disable")
        self.assertEqual(len(named["figure"]), 5)
        self.assertTrue(all(named["figure"]))
        plots = [name for name in named["group"] if name.startswith("Interactive figure:")]
        self.assertEqual(len(plots), 5)
        self.assertTrue(all(named["button"]), named["button"])
        self.assertTrue(all(named["link"]), named["link"])
        self.assertIn("main", named)
        self.assertIn("navigation", named)
        self.assertIn("Published and ours", named["region"])

    def test_downloads_are_the_files_and_commands_are_copied(self):
        self.open()
        downloads = self.folder / "downloads"
        self.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        self.draw("rates")
        self.click(self.browser.find_element(By.CSS_SELECTOR, "#figure_rates .save"))
        for button in self.browser.find_elements(By.CSS_SELECTOR, "#table_verdicts .save"):
            self.click(button)
        for name in ["rates.svg", "verdicts.csv", "verdicts.tex"]:
            self.until((downloads / name).exists, f"{name} is there")
        time.sleep(0.1)
        for name in ["verdicts.csv", "verdicts.tex"]:
            self.assertEqual((downloads / name).read_bytes(), (self.folder / "static-tables" / name).read_bytes())
        canonical = lambda path: ElementTree.canonicalize(path.read_text("utf-8"))
        self.assertEqual(canonical(downloads / "rates.svg"), canonical(self.folder / "static-figures/rates.svg"))
        copy = self.browser.find_element(By.CSS_SELECTOR, ".copy")
        self.click(copy)
        self.until(lambda: copy.text == "Copied", "the button says so")

    def test_paper(self):
        self.open()
        self.draw("rates")
        self.media("dark", "print")
        shown = lambda selector: self.js("return document.querySelector(arguments[0]).checkVisibility()", selector)
        self.assertTrue(shown("#figure_rates .static svg"))
        self.assertFalse(shown("#figure_rates .plot"))
        self.assertFalse(shown("#theme"))
        self.assertEqual(self.js("return getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.media()
        pdf = self.cdp("Page.printToPDF")["data"]
        self.assertGreater(len(pdf), 20000)
        self.assertFalse(self.js("return document.querySelector('details.folded').open"), "closed again after printing")

    # ---- without Plotly, without scripts

    def check_static(self):
        self.unfold()
        for name in FIGURES:
            self.assertTrue(self.js("return document.querySelector(`#figure_${arguments[0]} .static svg`).checkVisibility()", name))
        self.assertEqual(self.js("return document.querySelectorAll('svg.main-svg').length"), 0)
        self.assertLessEqual(self.overflow(), 0)

    def test_without_plotly(self):
        self.open("static")
        self.check_static()
        self.assertIn("built without Plotly", self.browser.find_element(By.TAG_NAME, "main").text)
        self.cdp("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        self.assertLessEqual(self.overflow(), 0)
        size, text = self.smallest_text()
        self.assertGreaterEqual(size, 11.99, text)
        self.media("dark")
        self.assertEqual(self.js("return getComputedStyle(document.querySelector('.static .background')).fill"),
                         self.js("return getComputedStyle(document.querySelector('section')).backgroundColor"))

    def test_without_scripts(self):
        self.cdp("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.get(f"file://{self.folder}/{'interactive' if self.interactive else 'static'}.html")
        self.check_static()
        self.assertFalse(self.js("return document.getElementById('theme').checkVisibility()"))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    if not program.result.wasSuccessful():
        sys.exit(1)
    if program.result.skipped:
        skip("Plotly is not built in: only the static page was tested")
