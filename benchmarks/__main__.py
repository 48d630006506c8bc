"""`python -m benchmarks`: measure, print tables of ratios, report which goals are reached and which ratios changed."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks import (
    collections,
    compiled,
    construction,
    fused_norm,
    layouts,
    padded,
    paper,
    products,
    supports,
    tiny,
    twin_reduction,
)
from benchmarks.cases import CASES, QUICK_CASES, Case
from benchmarks.goals import Verdict, verdicts
from benchmarks.imports import time_imports
from benchmarks.measure import Timing, load_average
from benchmarks.races import Effort, Raced, Section, race_record, race_table
from benchmarks.record import circumstances, record
from benchmarks.regressions import changes_table
from benchmarks.report import ratio_tables, verdict_table
from benchmarks.results import Result, measure
from benchmarks.sparse_layers import (
    FULL,
    QUICK,
    SparseResult,
    measure_sparse_layers,
    sparse_record,
    sparse_table,
    sparse_verdicts,
)
from benchmarks.sparse_layers import LEGEND as SPARSE_LEGEND

ROUNDS, QUICK_ROUNDS = 15, 3
IMPORT_ROUNDS, QUICK_IMPORT_ROUNDS = 9, 1
BUSY_LOAD = 0.5
RECORDED = Path(__file__).parent / "results" / "latest.json"

LEGEND = """\
ours     EquivariantLinear
bare     x @ [W_straight | W_transposed], the least that n n -> n n can cost; x @ [W_1 | ... | W_k!] at order k
hand     the same algorithm, written for n n -> n n alone in plain torch operations
stacked  all fifteen full matrices, channels first, mixed by one einsum: as in public implementations
last     the same in a better layout: all fifteen side by side in the channels, mixed by one matrix product
einsums  one einsum for each diagram
ms is the median time of one call, a/b the time of a over that of b (above 1: b is faster).
MB is peak extra memory, output and gradients included."""


class Question(NamedTuple):
    """A section: the function that measures it, and its legend."""

    measure: Callable[[Effort], Section]
    legend: str


QUESTIONS = {
    "tiny": Question(tiny.measure_tiny, tiny.LEGEND),
    "paper": Question(paper.measure_paper, paper.LEGEND),
    "twin_reduction": Question(twin_reduction.measure_twin_reduction, twin_reduction.LEGEND),
    "fused_norm": Question(fused_norm.measure_fused_norm, fused_norm.LEGEND),
    "padded": Question(padded.measure_padded, padded.LEGEND),
    "collections": Question(collections.measure_collections, collections.LEGEND),
    "products": Question(products.measure_products, products.LEGEND),
    "construction": Question(construction.measure_construction, construction.LEGEND),
    "compiled": Question(compiled.measure_compiled, compiled.LEGEND),
    "layouts": Question(layouts.measure_layouts, layouts.LEGEND),
    "supports": Question(supports.measure_supports, supports.LEGEND),
}
"""Sections beside the dense cases and the sparse layers, by their names in `--only`."""


class Measured(NamedTuple):
    """All results of a run."""

    results: list[Result]
    sections: dict[str, Section]
    sparse: list[SparseResult]
    imports: dict[str, Timing]

    @property
    def races(self) -> list[Raced]:
        """The races of all sections."""
        return [race for section in self.sections.values() for race in section.races]

    @property
    def summary(self) -> list[Verdict]:
        """All summary figures, with their goals."""
        found = verdicts(self.results, self.imports)
        found += [verdict for section in self.sections.values() for verdict in section.verdicts]
        return found + (sparse_verdicts(self.sparse) if self.sparse else [])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    load = load_average()
    warnings: list[str] = []
    if load is not None and load > BUSY_LOAD:
        _warn(warnings, f"the load average is {load:.2f}: other work is running, timings will be distorted")
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    measured = _measure(options, rounds)
    steady = [one.is_steady for several in (measured.results, measured.races, measured.sparse) for one in several]
    if unsteady := steady.count(False):
        _warn(warnings, f"the time of fixed work varied in {unsteady} of {len(steady)} races: a busy machine")
    text = _tables(measured)
    about = circumstances(threads=options.threads, rounds=rounds, load=load)
    found = record(about, measured.results, measured.imports, measured.summary, warnings)
    if measured.races:
        found["races"] = race_record(measured.races)
    if measured.sparse:
        found["sparse"] = sparse_record(measured.sparse)
    if options.quick or options.case:
        text += "\n\nThe goals are set for a full run, without --quick and --case, on an otherwise idle machine."
    print(text)
    if RECORDED.exists() and not (options.quick or options.case):
        print("\n" + changes_table(json.loads(RECORDED.read_text(encoding="utf-8")), found))
    for warning in warnings:
        print(f"warning: {warning}")
    _write(options, found, text)


def _measure(options: argparse.Namespace, rounds: int) -> Measured:
    everything = ("dense",) if options.case else ("dense", "sparse_layers", *QUESTIONS)
    chosen = options.only or everything
    cases = (options.case or (QUICK_CASES if options.quick else CASES)) if "dense" in chosen else ()
    results: list[Result] = []
    for case in cases:
        _report_progress(f"{case.spec} at batch,n,in,out = {str(case).partition(':')[2]}")
        results += measure(case, rounds=rounds)
    sections: dict[str, Section] = {}
    for name in QUESTIONS:
        if name in chosen:
            _report_progress(name)
            sections[name] = QUESTIONS[name].measure(Effort(rounds, options.quick))
    sparse: list[SparseResult] = []
    if "sparse_layers" in chosen:
        _report_progress("sparse layers")
        sparse = measure_sparse_layers(QUICK if options.quick else FULL, rounds=rounds)
    imports: dict[str, Timing] = {}
    if "dense" in chosen:
        imports = time_imports(rounds=QUICK_IMPORT_ROUNDS if options.quick else IMPORT_ROUNDS)
    return Measured(results, sections, sparse, imports)


def _tables(measured: Measured) -> str:
    legends = [QUESTIONS[name].legend for name in measured.sections] + [SPARSE_LEGEND] * bool(measured.sparse)
    parts = ["\n".join([LEGEND, *legends])]
    if measured.results:
        parts.append(ratio_tables(measured.results))
    if measured.races:
        parts.append(race_table(measured.races))
    if measured.sparse:
        parts.append(sparse_table(measured.sparse))
    return "\n\n".join([*parts, verdict_table(measured.summary)])


def _report_progress(what: str) -> None:
    print(f"measuring {what}", file=sys.stderr, flush=True)


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
    parser.add_argument("--quick", action="store_true", help="few rounds and small cases, as a check")
    parser.add_argument(
        "--case",
        nargs="+",
        type=_case,
        metavar="ORDER:BATCH,N,IN,OUT",
        help=f"measure these cases instead of {' '.join(map(str, CASES))}",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=["dense", "sparse_layers", *QUESTIONS],
        help="measure only these (dense: the cases)",
    )
    parser.add_argument("--threads", type=int, default=2, help="number of threads of torch (default 2)")
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
