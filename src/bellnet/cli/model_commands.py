"""The commands fit, evaluate and predict: the estimators of `bellnet.estimator` from the shell."""

import argparse
import csv
import io
import json
import time
from pathlib import Path
from typing import Any

from bellnet.cli.command import (
    INTERRUPTED,
    OK,
    Command,
    check_file,
    count,
    from_zero,
    positive,
    write_file,
)
from bellnet.cli.graph_files import declare_data, read_data
from bellnet.cli.output import cell, print_error, printable
from bellnet.errors import OptionError


def _declare_fit(parser: argparse.ArgumentParser) -> None:
    declare_data(parser, "training")
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="the file to write")
    parser.add_argument("--regression", action="store_true", help="train on numbers instead of classes")
    parser.add_argument("--balanced", action="store_true", help="weigh classes by the inverse of how frequent they are")
    parser.add_argument(
        "--order", type=int, choices=(2, 3), help="3: a network over triples of nodes (default 2, pairs)"
    )
    parser.add_argument(
        "--n-estimators", metavar="N", type=count, help="how many networks answer together (default: 3, of much data 1)"
    )
    parser.add_argument("--epochs", metavar="N", type=count, help="the most epochs")
    parser.add_argument("--rate", metavar="R", type=positive, help="the learning rate")
    parser.add_argument("--batch", metavar="N", type=count, help="graphs in a batch")
    parser.add_argument(
        "--layout",
        choices=("auto", "padded", "sparse"),
        help="padded: all pairs of nodes; sparse: edges and nodes only; auto: what is cheaper (default auto)",
    )
    parser.add_argument("--max-gigabytes", metavar="G", type=positive, help="the most memory (default: half of it)")
    parser.add_argument(
        "--seed",
        metavar="N",
        type=from_zero,
        default=0,
        help="of everything random (default 0); the same seed gives the same model for the same number of torch "
        "threads (OMP_NUM_THREADS)",
    )
    _declare_device(parser, "default auto, a GPU if there is one")
    _declare_output(parser)


def _run_fit(arguments: argparse.Namespace) -> int:
    from bellnet.estimator import GraphClassifier, GraphRegressor

    if arguments.regression and arguments.balanced:
        raise OptionError("--balanced is about classes; with --regression there are none.")
    check_file(arguments.out)
    given = read_data(arguments, "training")
    answers = given.answers(numbers=arguments.regression)
    asked = {"max_epochs": arguments.epochs, "learning_rate": arguments.rate, "batch_size": arguments.batch}
    asked |= {
        "order": arguments.order,
        "n_estimators": arguments.n_estimators,
        "layout": arguments.layout,
        "max_gigabytes": arguments.max_gigabytes,
        "device": arguments.device,
    }
    options: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    options |= {"random_state": arguments.seed, "verbose": not arguments.silent}
    if arguments.balanced:
        options["class_weight"] = "balanced"
    model: Any = GraphRegressor(**options) if arguments.regression else GraphClassifier(**options)
    start = time.perf_counter()
    try:
        model.fit(given.graphs, answers)
    except KeyboardInterrupt:
        print_error("\nStopped. Nothing was written.")
        return INTERRUPTED
    model.save(arguments.out)
    kept = model.history_[model.best_epoch_]
    about = {
        "data": str(given.path),
        "graphs": len(given.graphs),
        "classes": None if arguments.regression else model.classes_.tolist(),
        "epochs": len(model.history_),
        "best_epoch": model.best_epoch_,
        **{name: value for name, value in kept.items() if name != "epoch"},
        "seconds": round(time.perf_counter() - start, 1),
        "model": str(arguments.out),
    }
    if arguments.json:
        print(json.dumps(about, indent=2))
        return OK
    if arguments.silent:  # or the fit has said it
        print(model.fit_summary_)
    print(f"wrote {printable(arguments.out)}")
    return OK


def _declare_evaluate(parser: argparse.ArgumentParser) -> None:
    _declare_model(parser)
    declare_data(parser, "test")
    _declare_output(parser, silent=False)


def _run_evaluate(arguments: argparse.Namespace) -> int:
    from bellnet.estimator import GraphRegressor

    model = _load(arguments)
    given = read_data(arguments, "test")
    numbers = isinstance(model, GraphRegressor)
    answers, found = given.answers(numbers=numbers), model.predict(given.graphs)
    measured = _errors(answers, found) if numbers else _hits(answers, found.tolist())
    if arguments.json:
        print(json.dumps({"data": str(given.path), "graphs": len(given.graphs), **measured}, indent=2))
        return OK
    for name, value in measured.items():
        if isinstance(value, float):
            print(f"{name.replace('_', ' '):<19}  {value:.4f}")
    if not numbers:
        print("\n" + _class_table(measured["classes"]))
    return OK


def _hits(answers: list[Any], found: list[Any]) -> dict[str, Any]:
    """Accuracy, and for every class of either list how many graphs have it, are said to have it, and both."""
    classes = [
        {
            "class": name,
            "graphs": answers.count(name),
            "predicted": found.count(name),
            "hits": sum(answer == said == name for answer, said in zip(answers, found, strict=True)),
        }
        for name in sorted({*answers, *found}, key=lambda name: (str(type(name)), name))
    ]
    recalls = [row["hits"] / row["graphs"] for row in classes if row["graphs"]]
    return {
        "accuracy": sum(row["hits"] for row in classes) / len(answers),
        "balanced_accuracy": sum(recalls) / len(recalls),
        "classes": classes,
    }


def _errors(answers: Any, found: Any) -> dict[str, Any]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    return {
        "r2": float(r2_score(answers, found)),
        "mean_absolute_error": float(mean_absolute_error(answers, found)),
        "root_mean_square_error": float(root_mean_squared_error(answers, found)),
    }


def _class_table(classes: list[dict[str, Any]]) -> str:
    counted = ("graphs", "predicted", "hits")
    rows = [["class", *counted, "recall", "precision"]]
    for row in classes:
        recall, precision = (f"{row['hits'] / row[of]:.3f}" if row[of] else "-" for of in ("graphs", "predicted"))
        rows.append([printable(row["class"]), *(str(row[name]) for name in counted), recall, precision])
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = []
    for name, *cells in rows:
        lines.append("  ".join([name.ljust(first), *(cell.rjust(w) for cell, w in zip(cells, others, strict=True))]))
    return "\n".join(lines)


def _declare_predict(parser: argparse.ArgumentParser) -> None:
    _declare_model(parser)
    declare_data(parser, "test")
    parser.add_argument("--out", metavar="CSV", type=Path, help="the table to write (default: standard output)")
    _declare_output(parser, silent=False)


def _run_predict(arguments: argparse.Namespace) -> int:
    from bellnet.estimator import GraphRegressor

    if arguments.out is not None:
        check_file(arguments.out)
    model = _load(arguments)
    given = read_data(arguments, "test")
    if isinstance(model, GraphRegressor):
        rows = _number_rows(given.names, model.predict(given.graphs))
    else:
        rows = _class_rows(given.names, model.classes_.tolist(), model.predict_proba(given.graphs))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, rows[0]))
    writer.writerows(map(cell, row.values()) for row in rows)
    if arguments.out is not None:
        write_file(arguments.out, text.getvalue().encode(errors="surrogateescape"))
    if arguments.json:
        print(json.dumps(rows, indent=2))
    elif arguments.out is not None:
        print(f"wrote {printable(arguments.out)}: {len(rows)} graphs")
    else:
        print(text.getvalue(), end="")
    return OK


def _class_rows(names: list[str], classes: list[Any], probabilities: Any) -> list[dict[str, Any]]:
    return [
        {
            "graph": name,
            "prediction": classes[int(row.argmax())],
            **{f"p({known})": round(float(p), 6) for known, p in zip(classes, row, strict=True)},
        }
        for name, row in zip(names, probabilities, strict=True)
    ]


def _number_rows(names: list[str], found: Any) -> list[dict[str, Any]]:
    if found.ndim == 1:
        return [{"graph": name, "prediction": float(value)} for name, value in zip(names, found, strict=True)]
    return [
        {"graph": name, **{f"prediction {place}": float(value) for place, value in enumerate(row)}}
        for name, row in zip(names, found, strict=True)
    ]


def _declare_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="what `bellnet fit` or `save` wrote")
    _declare_device(parser, "default: that of the model, usually auto")


def _declare_device(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--device", metavar="D", help=f"where to compute: auto, cpu, cuda:1, ... ({default})")


def _declare_output(parser: argparse.ArgumentParser, *, silent: bool = True) -> None:
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    if silent:
        parser.add_argument("--silent", action="store_true", help="show no progress")


def _load(arguments: argparse.Namespace) -> Any:
    from bellnet.estimator import load

    model = load(arguments.model, device=arguments.device)
    if model.target != "graph":
        raise OptionError(f"{arguments.model} predicts {model.target}s; the command line is for labels of graphs.")
    return model


COMMANDS = (
    Command(
        "fit",
        "learn to classify graphs, and write the model",
        (
            "fit MUTAG.zip --out mutag.safetensors",
            "fit MUTAG --split 0 --out mutag.safetensors --balanced --seed 1",
            "fit molecules/ --labels classes.csv --out molecules.safetensors --json",
            "fit FreeSolv.zip --regression --out freesolv.safetensors",
        ),
        _declare_fit,
        _run_fit,
    ),
    Command(
        "evaluate",
        "measure a model on graphs whose labels are known",
        (
            "evaluate mutag.safetensors MUTAG.zip --split 0",
            "evaluate molecules.safetensors more_molecules/ --json",
        ),
        _declare_evaluate,
        _run_evaluate,
    ),
    Command(
        "predict",
        "predict the labels of graphs, as a table",
        (
            "predict molecules.safetensors new_molecules/ --out predictions.csv",
            "predict mutag.safetensors MUTAG.zip --json",
        ),
        _declare_predict,
        _run_predict,
    ),
)
