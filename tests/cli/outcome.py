"""Commands run inside of the test process."""

from bellnet.cli.main import main


def outcome(capsys, *arguments):
    """The exit code, and what was printed to standard output and standard error."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()
