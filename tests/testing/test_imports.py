"""Using the checks needs torch only; hypothesis is asked for by those who import the strategies."""

import importlib
import subprocess
import sys

import pytest

from bellnet import errors

WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
from bellnet import testing
testing.assert_equivariant(lambda x: x, "n -> n", in_channels=1)
"""


def test_the_checks_work_without_hypothesis():
    done = subprocess.run([sys.executable, "-c", WITHOUT_HYPOTHESIS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_hypothesis_the_strategies_name_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "bellnet.testing.strategies", raising=False)
    with pytest.raises(errors.MissingExtraError) as caught:
        importlib.import_module("bellnet.testing.strategies")
    assert str(caught.value) == (
        "bellnet.testing.strategies needs hypothesis, which is not installed.\nRun: pip install bellnet[testing]"
    )
