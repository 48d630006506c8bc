"""Each case raises the error of its snapshot, and each raise statement has a case."""

import inspect

import pytest

from bellnet import errors
from tests.messages.sites import LIBRARY, checked_sites, names_raised, raise_sites
from tests.messages.snapshot import AREAS, SNAPSHOTS, Outcome, differences, outcome_of, read, write


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    """The outcomes of the cases of an area; each case runs once."""
    sites = checked_sites()
    cached = {}

    def of(area):
        if area not in cached:
            folder = tmp_path_factory.mktemp(area)
            cached[area] = {
                name: outcome_of(call, folder / str(number), sites)
                for number, (name, call) in enumerate(AREAS[area].items())
            }
        return cached[area]

    return of


@pytest.mark.parametrize("area", AREAS)
def test_messages_are_those_of_the_snapshot(area, outcomes, request):
    found, file = outcomes(area), SNAPSHOTS / f"{area}.txt"
    assert [f"{name!r}: {outcome}" for name, outcome in found.items() if outcome.error is None] == []
    texts = {name: str(outcome) for name, outcome in found.items()}
    if request.config.getoption("--update-messages"):
        write(file, texts)
    stored = read(file)
    if texts != stored:
        pytest.fail("\n\n".join([*differences(texts, stored), "If this is meant, run pytest with --update-messages."]))
    assert list(stored) == list(texts)


@pytest.mark.parametrize("area", AREAS)
def test_messages_can_be_read_in_a_terminal(area, outcomes):
    for name, outcome in outcomes(area).items():
        lines = outcome.message.split("\n")
        assert all(line == line.rstrip() for line in lines), name
        assert max(map(len, lines)) <= 200, name
        if area != "cli" and not lines[-1].startswith("    "):  # texts of argparse, and tables
            assert lines[-1].endswith(".") or lines[-1].startswith("Install it: pip install '"), name


def test_every_raise_statement_is_reached_by_a_case(outcomes):
    sites = checked_sites()
    reached = {outcome.site for area in AREAS for outcome in outcomes(area).values()}
    assert len(sites) > 90
    assert [site for site in sites if site not in reached] == []


CLASSES = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if not issubclass(kind, Warning)}


def test_every_class_of_error_is_raised_by_a_case(outcomes):
    raised = {outcome.error.__name__ for area in AREAS for outcome in outcomes(area).values()}
    assert CLASSES.keys() - raised == {"BellnetError"}


def test_every_error_is_a_value_error_and_a_bellnet_error():
    assert all(issubclass(kind, errors.BellnetError) for kind in CLASSES.values())
    assert issubclass(errors.BellnetError, ValueError)
    assert issubclass(errors.SpecWarning, UserWarning)


SYSTEM_ERRORS = {
    "__init__.py": {"AttributeError"},
    "kernels/calling.py": {"MemoryError", "OSError", "SupportError", "TensorError"},
    "_utils/files.py": {"OSError", "FileNotFoundError", "PermissionError"},
}
"""The files that raise other errors than those of the library, and which."""


def test_other_errors_than_those_of_the_library_are_raised_in_few_files():
    assert {file: names_raised(LIBRARY / file) for file in SYSTEM_ERRORS} == SYSTEM_ERRORS
    others = set(LIBRARY.rglob("*.py")) - {LIBRARY / file for file in SYSTEM_ERRORS}
    assert names_raised(*others) <= {*vars(errors), "AssertionError", "NotImplementedError"}


def test_a_raise_statement_is_found_at_any_depth(tmp_path):
    file = tmp_path / "planted.py"
    file.write_text(
        "def f():\n    try:\n        g()\n    except ValueError:\n        raise\n    raise X(\n        1\n    )\n"
    )
    assert raise_sites(file, tmp_path) == [("planted.py", 6, 8)]


PLANTED = {"a": "SpecError: one\n\n    two", "b": "SpecError: three."}


def test_a_snapshot_is_read_as_it_was_written(tmp_path):
    write(tmp_path / "planted.txt", PLANTED)
    assert read(tmp_path / "planted.txt") == PLANTED
    assert differences(PLANTED, PLANTED) == []


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({**PLANTED, "b": "SpecError: four."}, "'b' raises\nSpecError: three.\n\nbut its entry is\nSpecError: four."),
        (
            {**PLANTED, "b": "SizesError: three."},
            "'b' raises\nSpecError: three.\n\nbut its entry is\nSizesError: three.",
        ),
        ({**PLANTED, "c": ""}, "'c' is an entry of no case"),
        ({"a": PLANTED["a"]}, "'b' has no entry; it raises\nSpecError: three."),
    ],
    ids=["message", "class", "unused", "missing"],
)
def test_a_planted_difference_to_a_snapshot_is_found(stored, message):
    assert differences(PLANTED, stored) == [message]


def _key_error():
    raise KeyError("planted")


@pytest.mark.parametrize(
    ("call", "message"),
    [(lambda: None, "nothing was raised"), (_key_error, "KeyError: 'planted'")],
    ids=["no error", "KeyError"],
)
def test_a_case_without_an_error_of_the_library_is_found(call, message, tmp_path):
    outcome = outcome_of(call, tmp_path / "folder")
    assert outcome.error is None
    assert message in outcome.message


def test_the_folder_of_a_case_is_shown_without_its_path(tmp_path):
    def call(folder):
        raise errors.DataError(f"{folder}/a.txt is empty.")

    assert outcome_of(call, tmp_path / "folder") == Outcome(errors.DataError, "FOLDER/a.txt is empty.")
