"""Attention maps in headless Chromium, with a real mouse and a real keyboard: chromium_test.py EXAMPLE_MODELS ATTMIRROR.

EXAMPLE_MODELS writes small networks, a vocabulary and sentences into a folder; ATTMIRROR makes the page of them. Exits with
77 and a line that says why where Chromium, its driver or Selenium is missing.
"""
import base64
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True  # leave the source tree as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from chromium import PageTest, start_browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

MODELS, ATTMIRROR = sys.argv.pop(1), sys.argv.pop(1)


class MapsTest(PageTest):
    """Tests of maps.html, which attention-map makes with the arguments of the class."""
    ARGUMENTS = []

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attmirror-maps-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([MODELS, cls.folder], check=True)
        subprocess.run([ATTMIRROR, "deep", "attention-map", *cls.ARGUMENTS, "--vocabulary", "vocab.txt", "--quiet", "-o",
                        "maps.html"], check=True, cwd=cls.folder)
        cls.browser = start_browser(cls.folder / "profile")
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        super().setUp()
        self.browser.get(f"file://{self.folder}/maps.html")

    def check_phone_in_the_dark(self):
        self.cdp("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.get(f"file://{self.folder}/maps.html")
        self.assertLessEqual(self.js(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        # Text and background of every token stand out from each other.
        self.assertGreaterEqual(self.js("""
            const light = color => color.match(/\\d+/g).slice(0, 3).map(Number).map(part => part / 255)
              .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
              .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0.05);
            return Math.min(...[...document.querySelectorAll('button.token')].map(token => {
              const style = getComputedStyle(token), pair = [light(style.color), light(style.backgroundColor)];
              return Math.max(...pair) / Math.min(...pair);
            }))"""), 4.4)
        self.cdp("Emulation.setEmulatedMedia", features=[])


class Maps(MapsTest):
    ARGUMENTS = ["sharp.safetensors", "deep.safetensors", "--text", "The projector overheats", "--sentences",
                 "sentences.tsv"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        html = (cls.folder / "maps.html").read_text("utf-8")
        cls.data = json.loads(re.search(r'class="maps-data">(.*?)</script>', html, re.S).group(1))

    # ---- helpers

    def row(self, text, model, query=0, block=None, head=None):
        """The attention of a token, from the data in the page, computed here."""
        one = self.data["texts"][text]["models"][model]
        tokens = len(self.data["texts"][text]["tokens"])
        bytes_ = base64.b64decode(one["p"])
        values = [v / 65535 for v in struct.unpack(f"<{len(bytes_) // 2}H", bytes_)]
        block = one["blocks"] - 1 if block is None else block
        heads = range(one["heads"]) if head is None else [head]
        at = lambda h, t: values[((block * one["heads"] + h) * one["rows"] + query) * tokens + t]
        return [sum(at(h, t) for h in heads) / len(heads) for t in range(tokens)]

    @staticmethod
    def stretched(row):
        least, most = min(row), max(row)
        return [(p - least) / (most - least) for p in row]

    def tokens(self, text, model):
        item = self.browser.find_elements(By.CSS_SELECTOR, ".texts > li")[text]
        return item.find_elements(By.CSS_SELECTOR, ".model")[model].find_elements(By.CSS_SELECTOR, ".token")

    def shown(self, text, model):
        return [token.find_element(By.CLASS_NAME, "value").text for token in self.tokens(text, model)]

    def readout(self, text, model):
        return self.browser.find_elements(By.CSS_SELECTOR, ".texts > li")[text].find_elements(
            By.CSS_SELECTOR, ".readout")[model].text

    def choose(self, name, value):
        Select(self.browser.find_element(By.CSS_SELECTOR, f".controls .{name}")).select_by_value(value)

    def check(self, text, model, expected):
        steps = self.js("return arguments[0].map(token => Number(token.className.match(/heat-(\\d+)/)[1]))",
                        self.tokens(text, model))
        for number, step, wanted in zip(self.shown(text, model), steps, expected):
            if number.startswith("<"):
                self.assertLess(wanted, 0.005)
            else:
                self.assertAlmostEqual(float(number), wanted, delta=0.00501)
            self.assertAlmostEqual(step, wanted * 15, delta=0.51)

    # ---- tests

    def test_first_view_is_the_last_block_and_the_mean_over_heads(self):
        for text in range(len(self.data["texts"])):
            for model in range(2):
                self.check(text, model, self.stretched(self.row(text, model)))

    def test_blocks_heads_and_scales(self):
        self.choose("block", "0")
        self.check(1, 0, self.stretched(self.row(1, 0, block=0)))
        self.choose("head", "1")
        self.check(1, 1, self.stretched(self.row(1, 1, block=0, head=1)))
        self.choose("scale", "raw")
        self.check(1, 0, self.row(1, 0, block=0, head=1))
        # The first network has 2 blocks of 2 heads, the second 3 of 3.
        self.choose("block", "2")
        self.assertEqual(set(self.shown(1, 0)), {"–"})
        self.assertIn("no such block", self.readout(1, 0))
        self.check(1, 1, self.row(1, 1, block=2, head=1))

    def test_a_click_shows_the_row_of_a_token_in_both_models(self):
        before = self.shown(2, 0)
        ActionChains(self.browser, duration=20).move_to_element(self.tokens(2, 0)[2]).click().perform()
        for model in range(2):
            self.check(2, model, self.stretched(self.row(2, model, query=2)))
            self.assertEqual([token.get_attribute("aria-pressed") for token in self.tokens(2, model)].index("true"), 2)
        self.assertNotEqual(self.shown(2, 0), before)
        self.check(1, 0, self.stretched(self.row(1, 0)))  # other texts stay
        ActionChains(self.browser, duration=20).click().perform()
        self.assertEqual(self.shown(2, 0), before)

    def test_numbers_under_the_mouse(self):
        row = self.row(1, 0)
        ActionChains(self.browser, duration=20).move_to_element(self.tokens(1, 0)[4]).perform()
        said = self.readout(1, 0)
        self.assertIn("[CLS] → fantastic (pivotal word)", said)
        self.assertIn(f"probability {row[4]:.4f}", said)
        self.assertIn(f"rank {1 + sum(p > row[4] for p in row)} of 6", said)
        self.browser.find_element(By.CSS_SELECTOR, ".controls .numbers").click()
        self.assertFalse(self.tokens(1, 0)[1].find_element(By.CLASS_NAME, "value").is_displayed())
        self.assertIn("fantastic", self.tokens(1, 0)[4].get_attribute("aria-label"))

    def test_keyboard(self):
        tokens = self.tokens(0, 0)
        self.js("arguments[0].focus()", tokens[0])
        press = lambda key: ActionChains(self.browser, duration=0).send_keys(key).perform()
        focused = lambda: self.browser.switch_to.active_element
        press(Keys.ARROW_RIGHT)
        self.assertEqual(focused(), tokens[1])
        self.assertIn("[CLS] → the", self.readout(0, 0))
        self.assertNotEqual(self.js("return getComputedStyle(arguments[0]).outlineStyle", tokens[1]), "none")
        press(Keys.END)
        self.assertEqual(focused(), tokens[-1])
        press(Keys.ENTER)
        self.check(0, 0, self.stretched(self.row(0, 0, query=len(tokens) - 1)))
        press(Keys.ESCAPE)
        self.check(0, 0, self.stretched(self.row(0, 0)))
        press(Keys.HOME)
        self.assertEqual(focused(), tokens[0])
        press(Keys.TAB)  # one stop for each text and model
        self.assertEqual(focused(), self.tokens(0, 1)[0])

    def test_pieces_of_a_word_touch(self):
        boxes = [token.rect for token in self.tokens(0, 0)]
        pieces = self.data["texts"][0]["tokens"]
        at = pieces.index("##heat")
        gap = lambda t: boxes[t]["x"] - boxes[t - 1]["x"] - boxes[t - 1]["width"]
        self.assertLess(gap(at), 1)
        self.assertGreater(gap(at - 1), 2)
        self.assertEqual(self.tokens(0, 0)[at].find_element(By.CLASS_NAME, "piece").text, "heat")

    def test_a_phone_in_the_dark(self):
        self.check_phone_in_the_dark()

    def test_without_scripts(self):
        self.cdp("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.get(f"file://{self.folder}/maps.html")
        self.assertFalse(self.js("return document.querySelector('.controls').checkVisibility()"))
        expected = self.stretched(self.row(1, 0))
        for number, wanted in zip(self.shown(1, 0), expected):
            self.assertAlmostEqual(float(number), wanted, delta=0.00501)


class DifferingMaps(MapsTest):
    """Four networks on the sentence in which they differ most and the one in which they differ least."""
    ARGUMENTS = ["sharp.safetensors", "deep.safetensors", "run", "trials/final-0.safetensors", "--sentences",
                 "sentences.tsv", "--differing", "1"]

    def groups(self):
        return self.browser.find_elements(By.CSS_SELECTOR, ".maps")

    @staticmethod
    def number(value):
        return 0 if value.text == "<0.01" else float(value.text)  # what is below 0.005 is shown like this

    def pivotal_values(self, group):
        return [self.number(model.find_element(By.CSS_SELECTOR, ".token.marked .value"))
                for model in group.find_elements(By.CSS_SELECTOR, ".model")]

    def test_each_network_has_its_score_beside_its_name(self):
        ranges = []
        for group in self.groups():
            names = [name.text for name in group.find_elements(By.CSS_SELECTOR, ".model-name")]
            self.assertEqual(len(names), 4)
            scores = [float(re.search(r": score (\d\.\d{3})", name).group(1)) for name in names]
            for score, shown in zip(scores, self.pivotal_values(group)):
                self.assertAlmostEqual(score, shown, delta=0.0056)
            self.assertIn("the highest", names[scores.index(max(scores))])
            self.assertIn("the lowest", names[scores.index(min(scores))])
            ranges.append(max(scores) - min(scores))
            said = re.search(r"scores differ by (\d\.\d{3})", group.find_element(By.CSS_SELECTOR, ".text-title").text)
            self.assertAlmostEqual(float(said.group(1)), ranges[-1], delta=0.0011)
        self.assertEqual(len(ranges), 2)
        self.assertGreater(ranges[0], ranges[1])

    def test_menus_change_their_own_group(self):
        most, least = self.groups()
        before = self.pivotal_values(least)
        Select(most.find_element(By.CSS_SELECTOR, ".controls .scale")).select_by_value("raw")
        for model in most.find_elements(By.CSS_SELECTOR, ".model"):  # probabilities sum to 1, stretched numbers do not
            values = model.find_elements(By.CSS_SELECTOR, ".value")
            self.assertAlmostEqual(sum(map(self.number, values)), 1, delta=0.006 * len(values))
        self.assertEqual(self.pivotal_values(least), before)

    def test_networks_stand_beside_each_other(self):
        places = [model.rect for model in self.groups()[0].find_elements(By.CSS_SELECTOR, ".model")]
        self.assertEqual(places[0]["y"], places[1]["y"])
        self.assertEqual(places[0]["x"], places[2]["x"])
        for place in places:  # none is cut off
            self.assertLessEqual(place["x"] + place["width"], 1280)

    def test_a_phone_in_the_dark(self):
        self.check_phone_in_the_dark()


if __name__ == "__main__":
    unittest.main(verbosity=2)
