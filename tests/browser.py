"""A browser without a window, for the pages that bellnet writes."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs a browser: install Debian's chromium and chromium-driver",
)


@contextmanager
def open_browser(profile):
    """A browser that keeps what it keeps in the directory `profile` and logs what pages complain of."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER, env={**os.environ}))
    try:
        yield driver
    finally:
        driver.quit()
