"""The words of every error, and that there is no error whose words are not tested."""

import inspect
from pathlib import Path

import pytest
import torch

import bellnet as bn
from bellnet import errors
from bellnet.nn.message_passing import CompactSet, ReluProduct
from tests.messages.cases import CASES
from tests.messages.sites import core_sites, names_raised, raise_sites, site_of

FOR_LATER: set[str] = set()
TESTED_ELSEWHERE = {"EquivarianceError": "testing", "DataError": "data"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_words_of_the_error_are_these(case):
    with pytest.raises(errors.BellnetError) as caught:
        case.call()
    assert str(caught.value) == case.words
    assert type(caught.value) is case.error


def test_every_error_can_be_caught_without_knowing_the_library():
    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, Warning):
            assert issubclass(error, UserWarning), name
        else:
            assert issubclass(error, ValueError), name
            assert issubclass(error, errors.BellnetError), name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_message_can_be_read_in_a_terminal(case):
    lines = case.words.split("\n")
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, lines)) <= 200
    assert lines[-1].endswith((".", "'"))


def test_every_raise_statement_of_the_core_has_a_case():
    sites = core_sites()
    reached = set()
    for case in CASES:
        try:
            case.call()
        except Exception as error:
            reached.add(site_of(error.__traceback__, sites))
    assert len(sites) > 40
    assert [site for site in sites if site not in reached] == []


def test_every_class_of_error_is_raised_and_tested_or_kept_for_later():
    found = inspect.getmembers(errors, inspect.isclass)
    classes = {name for name, thing in found if not issubclass(thing, Warning)} - {"BellnetError"}
    tested = {case.error.__name__ for case in CASES}
    assert classes == tested | set(TESTED_ELSEWHERE) | FOR_LATER
    assert not FOR_LATER & names_raised(), "an error that was kept for later is raised now and needs a case"
    for name, folder in TESTED_ELSEWHERE.items():
        files = (Path(__file__).parents[1] / folder).glob("test_*.py")
        assert any(name in file.read_text() for file in files), name


def test_no_mistake_is_reported_by_a_class_from_elsewhere():
    assert names_raised() <= {*vars(errors), "AssertionError", "NotImplementedError"}


def test_the_package_itself_only_says_that_it_lacks_a_name():
    assert names_raised("__init__.py") == {"AttributeError"}


def test_the_modules_of_kernels_report_what_the_system_says():
    assert names_raised("kernels/__init__.py") == {"OSError"}
    assert names_raised("kernels/calling.py") == {"MemoryError", "SupportError", "TensorError"}


def test_the_module_of_files_speaks_of_the_system_alone():
    assert names_raised("_utils/files.py") == {"OSError", "FileNotFoundError", "PermissionError"}


def test_a_raise_statement_is_found_wherever_it_stands(tmp_path):
    file = tmp_path / "planted.py"
    file.write_text(
        "def f():\n    try:\n        g()\n    except ValueError:\n        raise\n    raise X(\n        1\n    )\n"
    )
    assert raise_sites(file, tmp_path) == [("planted.py", 6, 8)]


NUMBER = 10**5000


@pytest.mark.parametrize(
    "call",
    [
        lambda: bn.EquivariantNet("n n -> n n", [4, NUMBER]),
        lambda: bn.EntryNorm("n n", NUMBER),
        lambda: bn.EquivariantNet("n n -> n n", [4, 4], dropout=NUMBER),
        lambda: bn.plan("n n -> n n", max_maps=-NUMBER),
        lambda: bn.plan("n n -> n n").cost(-NUMBER),
        lambda: bn.plan("n n -> n n").cost(3, batch=-NUMBER),
        lambda: bn.EquivariantLinear("n -> n", 1, 1, dtype=NUMBER),
        lambda: bn.EquivariantLinear("-> n", 1, 1)(torch.ones(1), sizes=NUMBER),
        lambda: bn.EquivariantLinear("-> n", 1, 1)(torch.ones(1), sizes={"n": -NUMBER}),
        lambda: bn.EquivariantLinear("n -> n", 1, 1)(torch.ones(3, 1), sizes={"n": NUMBER}),
        lambda: ReluProduct(NUMBER),
        lambda: CompactSet(-NUMBER, 1),
    ],
)
def test_a_number_of_more_digits_than_python_writes_is_refused_in_our_words(call):
    with pytest.raises(errors.BellnetError, match=r"too long to be written>|it is larger"):
        call()
