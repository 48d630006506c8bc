"""Names of files and classes without control characters and formulas."""

import pytest

from bellnet.cli.output import cell, printable, printable_lines


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain", "plain"),
        ("größe 日本 🙂", "größe 日本 🙂"),
        ("a\x1b]0;title\x07", r"a\x1b]0;title\x07"),
        ("a\rb\nc\td", r"a\x0db\x0ac\x09d"),
        ("\x7f\x9b31m", r"\x7f\x9b31m"),
        ("safe\u202egpj.exe", r"safe\u202egpj.exe"),
        ("\ud800", r"\ud800"),
        ("caf\udce9", "caf\udce9"),
    ],
)
def test_control_characters_are_escaped(name, shown):
    assert printable(name) == shown


def test_printable_lines_preserves_newlines():
    assert printable_lines("one\x1b\ntwo\r\n") == "one\\x1b\ntwo\\x0d\n"


@pytest.mark.parametrize("value", [-1, 0, -0.5, 1e-300, True, float("nan")])
def test_numbers_are_not_changed(value):
    assert cell(value) is value


@pytest.mark.parametrize(
    "name", ["-1", "-0.5", "+3", "-1e-5", "-.5", "-2.", "star", "a=b", "a-b", "1-2", "", "'x", "a;b", "1;-2"]
)
def test_names_that_are_not_formulas_are_not_changed(name):
    assert cell(name) == name


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=1+1", "'=1+1"),
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-inf", "'-inf"),
        ("-", "'-"),
        ("  =1", "'  =1"),
        ("\t=1", r"'\x09=1"),
        ("\rx", r"'\x0dx"),
        ("\nx", r"'\x0ax"),
        ("＝1", "'＝1"),
        # In many countries a semicolon ends a cell of a table, whatever was meant.
        ("a;=1+1", "a;'=1+1"),
        ("a; @SUM(A1);-1;-x", "a;' @SUM(A1);-1;'-x"),
        ("=1;=2", "'=1;'=2"),
        (';";=1', ";\";'=1"),
    ],
)
def test_formulas_are_quoted(name, written):
    assert cell(name) == written
