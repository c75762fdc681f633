"""Headless Chromium for tests of pages. Importing it ends the program with 77 and a line that says why where Chromium, its
driver or Selenium is missing."""
import json
import shutil
import sys
import unittest

SKIPPED = 77


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    skip("no Selenium for this Python (Debian: python3-selenium)")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    skip("no Chromium or no driver for it (Debian: chromium, chromium-driver)")


def start_browser(profile):
    options = Options()
    options.binary_location = CHROMIUM
    for argument in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
                     "--window-size=1280,900"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.get("about:blank")
    for kind in ["browser", "performance"]:
        browser.get_log(kind)  # what Chromium did before there was a page
    return browser


class PageTest(unittest.TestCase):
    """Tests of pages in `folder`, with `browser`: setUpClass makes both."""

    def setUp(self):
        self.cdp("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setScriptExecutionDisabled", value=False)

    def tearDown(self):
        """No test may make the page complain or ask a network for anything."""
        complaints = [entry["message"] for entry in self.browser.get_log("browser")
                      if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(complaints, [])
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            allowed = url.startswith((f"file://{self.folder}/", "data:", "blob:file://", "blob:null"))
            self.assertTrue(allowed or url == "about:blank", f"asked for {url}")

    def cdp(self, command, **parameters):
        return self.browser.execute_cdp_cmd(command, parameters)

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)
