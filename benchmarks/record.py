"""The record of a run: all results and their circumstances."""

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path
from typing import Any

import torch

import bellnet
from benchmarks.goals import Verdict
from benchmarks.measure import Timing
from benchmarks.results import Result


def circumstances(*, threads: int, rounds: int, load: float | None) -> dict[str, Any]:
    """Date, commit, versions, machine and options of a run."""
    commit = _git("rev-parse", "HEAD")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "uncommitted_changes": None if commit is None else bool(_git("status", "--porcelain")),
        "versions": {
            "bellnet": bellnet.__version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "system": platform.system(),
        "machine": platform.machine(),
        "cpus": cpu_count(),
        "threads": threads,
        "rounds": rounds,
        "load_average_at_start": load,
    }


def record(
    about: Mapping[str, Any],
    results: Sequence[Result],
    imports: Mapping[str, Timing],
    verdicts: Sequence[Verdict],
    warnings: Sequence[str],
) -> dict[str, Any]:
    """The record as a JSON-compatible object; times in seconds for one call, memory in bytes."""
    return {
        **about,
        "warnings": list(warnings),
        "results": [_result(result) for result in results],
        "imports": {name: timing.record() for name, timing in imports.items()},
        "summary": [
            {
                "what": verdict.what,
                "value": verdict.value,
                "goal": None if verdict.goal is None else str(verdict.goal),
                "reached": verdict.reached,
            }
            for verdict in verdicts
        ],
    }


def _result(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "spec": case.spec,
        "batch": case.batch,
        "n": case.n,
        "in_channels": case.in_channels,
        "out_channels": case.out_channels,
        "pass": result.which,
        "is_steady": result.is_steady,
        "contestants": {
            name: {**timing.record(), "peak_extra_bytes": result.peak_bytes[name]}
            for name, timing in result.timings.items()
        },
    }


def _git(*arguments: str) -> str | None:
    """The output of a git command in the repository of the library; None without git or repository."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=Path(bellnet.__file__).parent,
            capture_output=True,
            check=True,
            text=True,
            encoding="utf-8",
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
