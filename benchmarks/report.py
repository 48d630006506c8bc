"""Results as Markdown tables, which are also aligned for the terminal."""

from collections.abc import Sequence

from benchmarks.cases import CONTESTANTS, OURS, RATIOS, Pass
from benchmarks.goals import Verdict
from benchmarks.results import Result

MEGABYTE = 1e6
SHORT: dict[Pass, str] = {"forward": "fwd", "forward+backward": "fwd+bwd"}


def ratio_tables(results: Sequence[Result]) -> str:
    """A table for every order: one row per case and pass, with ratios of time, megabytes, and ratios of memory."""
    return "\n\n".join(
        _ratio_table(order, rows)
        for order in RATIOS
        if (rows := [result for result in results if result.case.order == order])
    )


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """One row per figure, with its goal."""
    rows = [["geometric mean over the cases, or one race", "value", "goal", ""]]
    for verdict in verdicts:
        outcome = {None: "", True: "reached", False: "NOT reached"}[verdict.reached]
        rows.append([verdict.what, f"{verdict.value:.2f}", str(verdict.goal or ""), outcome])
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """An aligned Markdown table: the first row is the header, numbers are right-aligned.

    >>> print(table([["case", "ms"], ["a", "12.5"]]))
    | case |   ms |
    |------|-----:|
    | a    | 12.5 |
    """
    head, *body = rows
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    right = [bool(body) and all(_is_number(row[column]) for row in body) for column in range(len(head))]
    lines = [_line(head, widths, right)]
    lines.append("|" + "|".join("-" * (w + 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True)) + "|")
    lines += [_line(row, widths, right) for row in body]
    return "\n".join(lines)


def _ratio_table(order: int, results: Sequence[Result]) -> str:
    names, pairs = CONTESTANTS[order], RATIOS[order]
    head = ["batch,n,in,out", "pass", f"{OURS} ms"]
    head += [f"{above}/{below}" for above, below in pairs]
    head += [f"{name} MB" for name in names]
    head += [f"MB {above}/{below}" for above, below in pairs]
    rows = [head]
    for result in results:
        row = [str(result.case).partition(":")[2], SHORT[result.which], f"{1e3 * result.timings[OURS].median:.2f}"]
        row += [f"{result.time_ratio(above, below):.2f}" for above, below in pairs]
        row += [f"{result.peak_bytes[name] / MEGABYTE:.1f}" for name in names]
        row += [f"{result.memory_ratio(above, below):.2f}" for above, below in pairs]
        rows.append(row)
    return f"{results[0].case.spec}\n\n{table(rows)}"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    aligned = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
    return "| " + " | ".join(aligned) + " |"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
