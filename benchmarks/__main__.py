"""`python -m benchmarks`: measure, print one table of ratios, and say which goals are reached."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.cases import CASES, QUICK_CASES, Case
from benchmarks.goals import verdicts
from benchmarks.imports import time_imports
from benchmarks.listed import FULL, QUICK, listed_record, listed_table, measure_listed, verdicts_on_listed
from benchmarks.listed import LEGEND as LISTED_LEGEND
from benchmarks.measure import load_average
from benchmarks.record import circumstances, record
from benchmarks.report import ratio_tables, verdict_table
from benchmarks.results import Result, measure

ROUNDS, QUICK_ROUNDS = 15, 3
IMPORT_ROUNDS, QUICK_IMPORT_ROUNDS = 9, 1
BUSY_LOAD = 0.5

LEGEND = """\
ours     EquivariantLinear
bare     x @ [W_straight | W_transposed], the least that n n -> n n can cost
stacked  all fifteen full matrices, channels first, mixed by one einsum: what public implementations do
last     the same in a better layout: all fifteen side by side in the channels, mixed by one matrix product
einsums  one einsum for each diagram
ms is the median time of one call, a/b the time of a over that of b (above 1: b is faster).
MB is peak extra memory, output and gradients included."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    load = load_average()
    warnings: list[str] = []
    if load is not None and load > BUSY_LOAD:
        _warn(warnings, f"the load average is {load:.2f}: other work is running, timings will be distorted")
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    results: list[Result] = []
    cases = () if options.only == "listed" else options.case or (QUICK_CASES if options.quick else CASES)
    for case in cases:
        print(f"measuring {case.spec} at batch,n,in,out = {str(case).partition(':')[2]}", file=sys.stderr, flush=True)
        results += measure(case, rounds=rounds)
    if unsteady := sum(not result.is_steady for result in results):
        _warn(warnings, f"fixed work did not take equally long in {unsteady} of {len(results)} races: a busy machine")
    listed = []
    if options.only != "dense" and not options.case:
        print("measuring listed tuples", file=sys.stderr, flush=True)
        listed = measure_listed(QUICK if options.quick else FULL, rounds=rounds)
        if unsteady := sum(not result.is_steady for result in listed):
            _warn(
                warnings, f"fixed work did not take equally long in {unsteady} of {len(listed)} races of listed tuples"
            )
    import_rounds = QUICK_IMPORT_ROUNDS if options.quick else IMPORT_ROUNDS
    imports = {} if options.only == "listed" else time_imports(rounds=import_rounds)
    summary = verdicts(results, imports)
    summary += verdicts_on_listed(listed) if listed else []
    about = circumstances(threads=options.threads, rounds=rounds, load=load)
    parts = [LEGEND + ("\n" + LISTED_LEGEND if listed else "")]
    parts += [ratio_tables(results)] * bool(results) + [listed_table(listed)] * bool(listed) + [verdict_table(summary)]
    if options.quick or options.case:
        parts.append(
            "The goals are set for a full run, without --quick and --case, on a machine that is idle otherwise."
        )
    text = "\n\n".join(parts)
    print(text)
    for warning in warnings:
        print(f"warning: {warning}")
    found = record(about, results, imports, summary, warnings)
    _write(options, {**found, "listed": listed_record(listed)} if listed else found, text)


def _warn(warnings: list[str], text: str) -> None:
    warnings.append(text)
    print(f"warning: {text}", file=sys.stderr, flush=True)


def _write(options: argparse.Namespace, found: dict[str, Any], text: str) -> None:
    as_json = json.dumps(found, indent=1) + "\n"
    if options.json is not None:
        options.json.write_text(as_json, encoding="utf-8")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "latest.json").write_text(as_json, encoding="utf-8")
        (options.out / "latest.md").write_text(_markdown(found, text), encoding="utf-8")


def _markdown(found: dict[str, Any], text: str) -> str:
    legend, _, tables = text.partition("\n\n")
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    commit = "no commit" if found["commit"] is None else f"commit {found['commit'][:12]}"
    changes = " with uncommitted changes" if found["uncommitted_changes"] else ""
    lines = [
        "# Benchmarks",
        f"{found['date']}, {commit}{changes}; {versions}; {found['threads']} threads, {found['rounds']} rounds.",
        *(f"**Warning:** {warning}." for warning in found["warnings"]),
        f"```text\n{legend}\n```",
        tables,
    ]
    return "\n\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds and small cases: does it run?")
    parser.add_argument(
        "--case",
        nargs="+",
        type=_case,
        metavar="ORDER:BATCH,N,IN,OUT",
        help=f"measure these cases instead of {' '.join(map(str, CASES))}",
    )
    parser.add_argument("--only", choices=["dense", "listed"], help="measure dense tensors, or listed tuples, alone")
    parser.add_argument("--threads", type=int, default=2, help="threads that torch may use (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record to this file")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write latest.json and latest.md to this directory")
    return parser


def _case(text: str) -> Case:
    try:
        return Case.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    main()
