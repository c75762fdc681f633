"""Attention maps of images in headless Chromium, with a real mouse and a real keyboard: images_chromium_test.py
EXAMPLE_MODELS ATTMIRROR.

EXAMPLE_MODELS writes small networks and images into a folder; ATTMIRROR makes the page of them. Exits with 77 and a line
that says why where Chromium, its driver or Selenium is missing.
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
import unittest

sys.dont_write_bytecode = True  # leave the source tree as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from chromium import PageTest, start_browser
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

MODELS, ATTMIRROR = sys.argv.pop(1), sys.argv.pop(1)
DARKEST = 204


class ImageMaps(PageTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="attmirror-images-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([MODELS, cls.folder], check=True)
        subprocess.run([ATTMIRROR, "deep", "attention-map", "patches.safetensors", "images.safetensors", "--images",
                        "images.bin", "--image", "0,4", "--quiet", "-o", "maps.html"], check=True, cwd=cls.folder)
        html = (cls.folder / "maps.html").read_text("utf-8")
        cls.data = json.loads(re.search(r'class="maps-data">(.*?)</script>', html, re.S).group(1))
        cls.pixels = (cls.folder / "images.bin").read_bytes()
        cls.browser = start_browser(cls.folder / "profile")
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        super().setUp()
        self.browser.get(f"file://{self.folder}/maps.html")

    # ---- helpers

    def row(self, image, model, block, head):
        """The class token's attention to patches, from the data in the page, computed here; head -1: the mean."""
        one = self.data["images"][image]["models"][model]
        tokens = 1 + one["side"] ** 2
        bytes_ = base64.b64decode(one["p"])
        values = [v / 65535 for v in struct.unpack(f"<{len(bytes_) // 2}H", bytes_)]
        heads = range(one["heads"]) if head < 0 else [head]
        return [sum(values[(block * one["heads"] + h) * tokens + t] for h in heads) / len(heads) for t in range(1, tokens)]

    def model(self, image, model):
        item = self.browser.find_elements(By.CSS_SELECTOR, ".texts > li")[image]
        return item.find_elements(By.CSS_SELECTOR, ".model")[model]

    def chosen(self, image, model):
        return self.model(image, model).find_element(By.CLASS_NAME, "chosen")

    def small(self, image, model, block, head):
        return self.model(image, model).find_element(
            By.CSS_SELECTOR, f'.patch-map[data-block="{block}"][data-head="{head}"]')

    def readout(self, image, model):
        return self.model(image, model).find_element(By.CLASS_NAME, "readout").text

    def scroll_to(self, element):
        """At once: the page scrolls smoothly, and a mouse would miss what moves."""
        self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)

    def click(self, element):
        self.scroll_to(element)
        element.click()

    def alphas(self, element):
        """How dark each patch of a map is, as the browser reads the picture."""
        return self.browser.execute_async_script("""
            const [element, done] = arguments, shade = element.querySelector('.shade');
            shade.decode().then(() => {
              const canvas = document.createElement('canvas');
              canvas.width = shade.naturalWidth;
              canvas.height = shade.naturalHeight;
              const context = canvas.getContext('2d');
              context.drawImage(shade, 0, 0);
              done([...context.getImageData(0, 0, canvas.width, canvas.height).data].filter((_, i) => i % 4 === 3));
            });""", element)

    def check(self, element, row, most=None):
        most = max(row) if most is None else most
        alphas = self.alphas(element)
        self.assertEqual(len(alphas), len(row))
        for alpha, p in zip(alphas, row):
            self.assertAlmostEqual(alpha, DARKEST * (1 - p / most), delta=1.2)

    # ---- tests

    def test_the_image_is_there(self):
        colors = self.browser.execute_async_script("""
            const done = arguments[0], image = new Image();
            image.onload = () => {
              const canvas = document.createElement('canvas');
              canvas.width = image.naturalWidth;
              canvas.height = image.naturalHeight;
              const context = canvas.getContext('2d');
              context.drawImage(image, 0, 0);
              done([canvas.width, canvas.height, ...context.getImageData(0, 0, canvas.width, canvas.height).data]);
            };
            image.src = document.querySelectorAll('.texts > li')[1].style.getPropertyValue('--image').slice(4, -1);""")
        self.assertEqual(colors[:2], [32, 32])
        planes = self.pixels[4 * 3073 + 1:5 * 3073]
        for i in range(1024):
            self.assertEqual(colors[2 + 4 * i:6 + 4 * i], [planes[i], planes[1024 + i], planes[2048 + i], 255])

    def test_every_block_and_head(self):
        for image in range(2):
            for model, (blocks, heads) in enumerate([(2, 3), (1, 2)]):
                for block in range(blocks):
                    for head in range(-1, heads):
                        self.check(self.small(image, model, block, head), self.row(image, model, block, head))
                self.check(self.chosen(image, model), self.row(image, model, blocks - 1, -1))

    def test_a_click_enlarges_the_map_in_all_networks_that_have_it(self):
        self.click(self.small(0, 0, 0, 1))
        self.check(self.chosen(0, 0), self.row(0, 0, 0, 1))
        self.check(self.chosen(0, 1), self.row(0, 1, 0, 1))
        self.check(self.chosen(1, 0), self.row(1, 0, 1, -1))  # other images stay
        self.assertIn("block 1, head 2", self.chosen(0, 0).text)
        self.assertEqual(self.small(0, 1, 0, 1).get_attribute("aria-pressed"), "true")
        self.click(self.small(0, 0, 1, 2))  # the second network has neither
        self.check(self.chosen(0, 0), self.row(0, 0, 1, 2))
        self.check(self.chosen(0, 1), self.row(0, 1, 0, 1))
        self.assertIn("of 16 patches", self.readout(0, 0))

    def test_scripts_say_what_the_page_says_without_them(self):
        before = {(image, model): self.readout(image, model) for image in range(2) for model in range(2)}
        for image in range(2):
            for model, last in enumerate([1, 0]):
                self.click(self.small(image, model, 0, 0))
                self.assertNotEqual(self.readout(image, model), before[image, model])
                self.click(self.small(image, model, last, -1))
                self.assertEqual(self.readout(image, model), before[image, model])

    def test_one_scale_for_all_maps_of_an_image(self):
        Select(self.browser.find_element(By.CSS_SELECTOR, ".controls .scale")).select_by_value("common")
        rows = {(m, b, h): self.row(1, m, b, h)
                for m, (blocks, heads) in enumerate([(2, 3), (1, 2)]) for b in range(blocks) for h in range(-1, heads)}
        most = max(max(row) for row in rows.values())
        for (model, block, head), row in rows.items():
            self.check(self.small(1, model, block, head), row, most)
        self.check(self.chosen(1, 0), rows[0, 1, -1], most)

    def test_the_image_beneath(self):
        beneath = lambda element: self.js("return getComputedStyle(arguments[0].querySelector('.picture')).backgroundImage",
                                          element) != "none"
        small, large = self.small(0, 0, 0, 0), self.chosen(0, 0)
        self.assertEqual([beneath(small), beneath(large)], [False, True])
        choice = Select(self.browser.find_element(By.CSS_SELECTOR, ".controls .beneath"))
        choice.select_by_value("all")
        self.assertEqual([beneath(small), beneath(large)], [True, True])
        choice.select_by_value("none")
        self.assertEqual([beneath(small), beneath(large)], [False, False])

    def test_patches_under_mouse_and_keyboard(self):
        row = self.row(0, 0, 1, -1)
        picture = self.chosen(0, 0).find_element(By.CLASS_NAME, "picture")
        self.scroll_to(picture)
        step = picture.rect["width"] / 4
        # From the middle of 4 x 4 patches to that in row 2, column 4.
        ActionChains(self.browser, duration=20).move_to_element_with_offset(picture, int(1.5 * step), int(-0.5 * step)).perform()
        rank = 1 + sum(p > row[7] for p in row)
        self.assertIn(f"Patch row 2, column 4: probability {row[7]:.4f}", self.readout(0, 0))
        self.assertIn(f"rank {rank} of 16", self.readout(0, 0))
        ActionChains(self.browser, duration=20).move_to_element(self.browser.find_element(By.TAG_NAME, "h3")).perform()
        self.assertIn("Top patch", self.readout(0, 0))

        self.js("arguments[0].focus()", self.chosen(0, 0))
        press = lambda key: ActionChains(self.browser, duration=0).send_keys(key).perform()
        place = lambda patch: f"row {patch // 4 + 1}, column {patch % 4 + 1}:"
        patch = row.index(max(row))
        press(Keys.ARROW_LEFT)  # the first key goes to the top patch
        self.assertIn(place(patch), self.readout(0, 0))
        for key in [Keys.ARROW_LEFT] * 3 + [Keys.ARROW_UP] * 3 + [Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT]:
            press(key)
        self.assertIn(place(6), self.readout(0, 0))
        press(Keys.ESCAPE)
        self.assertIn("Top patch", self.readout(0, 0))

    def test_the_top_patch_is_outlined(self):
        row = self.row(1, 0, 1, -1)
        top = self.chosen(1, 0).find_element(By.CLASS_NAME, "top").rect
        picture = self.chosen(1, 0).find_element(By.CLASS_NAME, "picture").rect
        step, patch = picture["width"] / 4, row.index(max(row))
        self.assertAlmostEqual((top["x"] - picture["x"]) / step, patch % 4, delta=0.05)
        self.assertAlmostEqual((top["y"] - picture["y"]) / step, patch // 4, delta=0.05)

    def test_side_by_side_on_a_screen_and_one_below_the_other_on_a_phone(self):
        first, second = self.model(0, 0).rect, self.model(0, 1).rect
        self.assertEqual(first["y"], second["y"])
        self.assertGreaterEqual(second["x"], first["x"] + first["width"])
        self.cdp("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        self.browser.get(f"file://{self.folder}/maps.html")
        self.assertLessEqual(self.js(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        first, second = self.model(0, 0).rect, self.model(0, 1).rect
        self.assertGreaterEqual(second["y"], first["y"] + first["height"])
        for image in range(2):
            for model in range(2):
                scroll = self.model(image, model).find_element(By.CLASS_NAME, "scroll-sideways")
                self.assertLessEqual(self.js("return arguments[0].scrollWidth - arguments[0].clientWidth", scroll), 0)

    def test_without_scripts(self):
        self.cdp("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.get(f"file://{self.folder}/maps.html")
        self.assertFalse(self.js("return document.querySelector('.controls').checkVisibility()"))
        self.assertIn("Top patch", self.readout(0, 0))
        self.assertTrue(self.small(0, 0, 1, 2).is_displayed())
        self.assertEqual(self.js("return arguments[0].querySelector('.shade').naturalWidth", self.small(0, 0, 1, 2)), 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
