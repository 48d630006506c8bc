"""Headless Chromium for tests of HTML pages.

Without Chromium these tests are skipped; with BELLNET_REQUIRE_BROWSER=1 in the environment, as in `.ci/run`, they fail.
"""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
IS_INSTALLED = CHROMIUM is not None and DRIVER is not None
MISSING = "needs a browser: install Debian's chromium and chromium-driver"
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
"""Chromium does not run as root with its sandbox."""

needs_browser = pytest.mark.skipif(not IS_INSTALLED and not os.environ.get("BELLNET_REQUIRE_BROWSER"), reason=MISSING)


@contextmanager
def open_browser(profile):
    """A browser with its profile in the directory `profile`, which logs the console messages of pages."""
    if not IS_INSTALLED:
        pytest.fail(MISSING)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With both paths given, selenium does not look for a driver to download.
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER, env={**os.environ}))
    try:
        yield driver
    finally:
        driver.quit()
