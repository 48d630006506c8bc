"""`.ci/run` installs a browser where possible, and requires the browser tests if there is one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASH = shutil.which("bash")

INSTALL = """
echo "apt-get $*"
case "$1" in install) for name in chromium chromedriver; do ln -s "$0" "${0%/*}/$name"; done ;; esac
"""


@pytest.fixture
def ci(tmp_path):
    """Runs `.ci/run` with only these commands on the path; returns stdout and stderr."""

    def run(**commands):
        commands["make"] = 'echo "make $* ${BELLNET_REQUIRE_BROWSER-}"'
        for name, script in commands.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!{BASH}\n{script}\n")
            path.chmod(0o755)
        for name in ("dirname", "ln"):
            (tmp_path / name).symlink_to(shutil.which(name))
        environment = {name: value for name, value in os.environ.items() if name != "BELLNET_REQUIRE_BROWSER"}
        environment["PATH"] = str(tmp_path)
        command = [BASH, str(ROOT / ".ci" / "run")]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        return finished.stdout.splitlines(), finished.stderr

    return run


pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")

REQUIRED = ["make lint 1", "make test 1", "make sanitize ARGS=--seconds 20 1", "make docs 1"]
NOT_REQUIRED = ["make lint ", "make test ", "make sanitize ARGS=--seconds 20 ", "make docs "]


def test_installed_browser_is_required(ci):
    assert ci(chromium="", chromedriver="", id="echo 0", apt_get="exit 1") == (REQUIRED, "")


def test_missing_browser_is_installed_and_then_required(ci):
    output, errors = ci(id="echo 0", apt_get=INSTALL)
    install = "apt-get install -y --no-install-recommends chromium chromium-driver"
    assert output == ["apt-get update", install, *REQUIRED]
    assert errors == ""


@pytest.mark.parametrize(
    "commands",
    [{"id": "echo 1000", "apt_get": INSTALL}, {"id": "echo 0"}, {"id": "echo 0", "apt_get": "exit 100"}],
    ids=["not root", "no apt-get", "no network"],
)
def test_other_checks_run_if_no_browser_can_be_installed(ci, commands):
    output, errors = ci(**commands)
    assert output == NOT_REQUIRED
    assert "the browser tests are skipped" in errors


@pytest.mark.slow
@pytest.mark.parametrize(("required", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_missing_browser_skips_browser_tests_unless_required(tmp_path, required, outcome):
    test = "tests/explorer/test_browser.py::test_bias_is_constant_on_its_orbit"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", test]
    environment = {**os.environ, "PATH": str(tmp_path), "BELLNET_REQUIRE_BROWSER": required}
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert outcome in finished.stdout.splitlines()[-1]
    assert "needs a browser: install Debian's chromium and chromium-driver" in finished.stdout
