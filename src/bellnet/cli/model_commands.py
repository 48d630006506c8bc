"""The commands fit, evaluate and predict: the estimators of `bellnet.estimator` from the shell."""

import argparse
import csv
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellnet.cli.command import INTERRUPTED, OK, Command, check_file, count, from_zero, positive, write_file
from bellnet.cli.output import cell, print_error, printable, table
from bellnet.errors import DataError, OptionError, did_you_mean

if TYPE_CHECKING:
    from bellnet.data import Graph

OPTIONS = ("order", "n_estimators", "max_epochs", "learning_rate", "batch_size", "layout", "max_gigabytes", "device")
"""The options of estimators that `bellnet fit` has."""


def _read_graphs(
    arguments: argparse.Namespace, side: int, *, regression: bool | None = None
) -> tuple[list[str], "list[Graph]", Any]:
    """The names of graphs, the graphs, and their classes, or for a regression their targets.

    Args:
        arguments: What names the graphs.
        side: 0 for the training graphs of a split, 1 for its test graphs.
        regression: Whether targets are wanted; None for neither targets nor classes.
    """
    from bellnet import data

    path: Path = arguments.data
    found: Any
    splits = None
    if path.is_dir() and any(path.glob("*.graphml")):
        for option in ("max_unpacked", "max_ratio"):
            if getattr(arguments, option) is not None:
                raise OptionError(f"--{option.replace('_', '-')} is for zips, but {path} is a folder of GraphML files.")
        found = data.graphml.load(path, arguments.labels)
        names = [Path(name).stem for name in found.ids]
    else:
        where = {"data": path} if path.exists() else {"name": str(path)}
        if "name" in where and str(path) not in data.tu.known_names():
            raise DataError(
                f"there is no {path}. {did_you_mean(str(path), data.tu.known_names())}".rstrip()
                + "\nGive a zip or folder of the TU layout, a folder of GraphML files, or the name of a data set: one "
                "in the folder BELLNET_DATA, or of the TU collection, such as MUTAG."
            )
        if arguments.labels is not None:
            raise OptionError("--labels is for a folder of GraphML files; the TU layout has its own labels.")
        found = data.tu.load(**where, max_unpacked=arguments.max_unpacked, max_ratio=arguments.max_ratio)
        names, splits = list(map(str, range(len(found)))), found.splits
    indices = list(range(len(found)))
    if (number := arguments.split) is not None:
        if splits is None:
            raise OptionError(f"--split {number}: {path} has no splits; they would be beside it in splits/NAME.json.")
        if number >= len(splits):
            raise OptionError(f"--split {number}: {path} has {len(splits)} splits, from 0 to {len(splits) - 1}.")
        indices = [int(index) for index in splits[number][side]]
    names, graphs = [names[index] for index in indices], [found.graphs[index] for index in indices]
    values = found.targets if regression else found.labels
    if regression is None:
        return names, graphs, None
    if values is None:
        what, file = ("targets", "attributes") if regression else ("labels", "labels")
        raise DataError(
            f"{path} has no {what}.\nIn the TU layout they are in NAME_graph_{file}.txt; for GraphML files write "
            "labels.csv with the columns file,label, or name a CSV with --labels."
        )
    if regression:
        targets = values[indices].numpy()
        return names, graphs, targets[:, 0] if targets.shape[1] == 1 else targets
    return names, graphs, [found.classes[label] for label in values[indices].tolist()]


def _declare_data(parser: argparse.ArgumentParser, side: str) -> None:
    parser.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        help="a zip or folder of the TU layout, a folder of GraphML files, or the name of a data set: one in the "
        "folder BELLNET_DATA, or of the TU collection, which is downloaded",
    )
    parser.add_argument(
        "--labels",
        metavar="CSV",
        type=Path,
        help="for GraphML: a table with the columns file,label (default: labels.csv in the folder)",
    )
    parser.add_argument(
        "--split", metavar="K", type=from_zero, help=f"only the {side} graphs of the published split K, from 0 up"
    )
    parser.add_argument(
        "--max-unpacked",
        metavar="BYTES",
        type=count,
        help="the maximum size of an unpacked file of a zip (default 2**30, a gigabyte)",
    )
    parser.add_argument(
        "--max-ratio",
        metavar="R",
        type=positive,
        help="the maximum compression ratio of a file of a zip that unpacks to more than 32 megabytes (default 200)",
    )


def _declare_device(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--device", metavar="D", help=f"auto, cpu, cuda:1, ... (default: {default})")


def _declare_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def _declare_fit(parser: argparse.ArgumentParser) -> None:
    _declare_data(parser, "training")
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="the file to write")
    parser.add_argument("--regression", action="store_true", help="train on numbers instead of classes")
    parser.add_argument("--balanced", action="store_true", help="weigh classes by the inverse of their frequencies")
    parser.add_argument("--order", type=int, choices=(2, 3), help="3 for triples of nodes (default 2, pairs)")
    parser.add_argument(
        "--n-estimators", metavar="N", type=count, help="number of networks (default: 3, on large data sets 1)"
    )
    parser.add_argument("--max-epochs", metavar="N", type=count, help="maximum number of epochs")
    parser.add_argument("--learning-rate", metavar="R", type=positive, help="learning rate")
    parser.add_argument("--batch-size", metavar="N", type=count, help="graphs in a batch")
    parser.add_argument(
        "--layout",
        choices=("auto", "padded", "sparse"),
        help="padded: all pairs of nodes; sparse: edges and nodes only; auto: the cheaper one (default auto)",
    )
    parser.add_argument(
        "--max-gigabytes", metavar="G", type=positive, help="maximum memory (default: half of the machine's)"
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=from_zero,
        default=0,
        help="random state (default 0); the same seed gives the same model for the same number of torch threads "
        "(OMP_NUM_THREADS)",
    )
    _declare_device(parser, "auto, a GPU if there is one")
    _declare_json(parser)
    parser.add_argument("--silent", action="store_true", help="show no progress")


def _run_fit(arguments: argparse.Namespace) -> int:
    from bellnet.estimator import GraphClassifier, GraphRegressor

    if arguments.regression and arguments.balanced:
        raise OptionError("--balanced weighs classes; with --regression there are none.")
    check_file(arguments.out)
    _, graphs, labels = _read_graphs(arguments, 0, regression=arguments.regression)
    options = {name: value for name in OPTIONS if (value := getattr(arguments, name)) is not None}
    options |= {"random_state": arguments.seed, "verbose": not arguments.silent}
    if arguments.balanced:
        options["class_weight"] = "balanced"
    model: Any = (GraphRegressor if arguments.regression else GraphClassifier)(**options)
    start = time.perf_counter()
    try:
        model.fit(graphs, labels)
    except KeyboardInterrupt:
        print_error("\nStopped. Nothing was written.")
        return INTERRUPTED
    model.save(arguments.out)
    if arguments.json:
        about = {
            "data": str(arguments.data),
            "graphs": len(graphs),
            "classes": None if arguments.regression else model.classes_.tolist(),
            "epochs": len(model.history_),
            "best_epoch": model.best_epoch_,
            **{name: value for name, value in model.history_[model.best_epoch_].items() if name != "epoch"},
            "seconds": round(time.perf_counter() - start, 1),
            "model": str(arguments.out),
        }
        print(json.dumps(about, indent=2))
        return OK
    if arguments.silent:  # otherwise `fit` has printed it
        print(model.fit_summary_)
    print(f"wrote {printable(arguments.out)}")
    return OK


def _declare_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a file of `bellnet fit` or `save`")
    _declare_data(parser, "test")
    _declare_device(parser, "that of the model, usually auto")
    _declare_json(parser)


def _load(arguments: argparse.Namespace) -> tuple[Any, bool]:
    """The model, and whether it is a regressor."""
    from bellnet.estimator import GraphRegressor, load

    model = load(arguments.model, device=arguments.device)
    if model.target != "graph":
        raise OptionError(f"{arguments.model} predicts {model.target}s; the command line is for labels of graphs.")
    return model, isinstance(model, GraphRegressor)


def _run_evaluate(arguments: argparse.Namespace) -> int:
    model, regression = _load(arguments)
    _, graphs, labels = _read_graphs(arguments, 1, regression=regression)
    predictions = model.predict(graphs)
    scores = _regression_scores(labels, predictions) if regression else _class_scores(labels, predictions.tolist())
    if arguments.json:
        print(json.dumps({"data": str(arguments.data), "graphs": len(graphs), **scores}, indent=2))
        return OK
    for name, value in scores.items():
        if isinstance(value, float):
            print(f"{name.replace('_', ' '):<19}  {value:.4f}")
    if not regression:
        print("\n" + _class_table(scores["classes"]))
    return OK


def _class_scores(labels: Sequence[Any], predictions: Sequence[Any]) -> dict[str, Any]:
    """The accuracies, and for each class the numbers of graphs, of predictions and of correct predictions."""
    classes = [
        {
            "class": name,
            "graphs": labels.count(name),
            "predicted": predictions.count(name),
            "correct": sum(label == found == name for label, found in zip(labels, predictions, strict=True)),
        }
        for name in sorted({*labels, *predictions}, key=lambda name: (str(type(name)), name))
    ]
    recalls = [row["correct"] / row["graphs"] for row in classes if row["graphs"]]
    accuracy = sum(row["correct"] for row in classes) / len(labels)
    return {"accuracy": accuracy, "balanced_accuracy": sum(recalls) / len(recalls), "classes": classes}


def _class_table(classes: list[dict[str, Any]]) -> str:
    rows = [["class", "graphs", "predicted", "correct", "recall", "precision"]]
    for name, *counts in map(dict.values, classes):
        recall, precision = (f"{counts[2] / of:.3f}" if of else "-" for of in counts[:2])
        rows.append([printable(name), *map(str, counts), recall, precision])
    return table(rows, "<>>>>>")


def _regression_scores(labels: Any, predictions: Any) -> dict[str, Any]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    return {
        "r2": float(r2_score(labels, predictions)),
        "mean_absolute_error": float(mean_absolute_error(labels, predictions)),
        "root_mean_square_error": float(root_mean_squared_error(labels, predictions)),
    }


def _declare_predict(parser: argparse.ArgumentParser) -> None:
    _declare_model(parser)
    parser.add_argument("--out", metavar="CSV", type=Path, help="the table to write (default: standard output)")


def _run_predict(arguments: argparse.Namespace) -> int:
    if arguments.out is not None:
        check_file(arguments.out)
    model, regression = _load(arguments)
    graph_names, graphs, _ = _read_graphs(arguments, 1)
    if regression:
        found = model.predict(graphs)
        is_single = found.ndim == 1
        columns = {"prediction": found} if is_single else {f"prediction {i}": row for i, row in enumerate(found.T)}
    else:
        found = model.predict_proba(graphs)
        names = [f"p({name})" for name in model.classes_.tolist()]
        columns = {"prediction": model.classes_[found.argmax(1)], **dict(zip(names, found.round(6).T, strict=True))}
    lists = [graph_names, *(column.tolist() for column in columns.values())]
    rows = [dict(zip(("graph", *columns), row, strict=True)) for row in zip(*lists, strict=True)]
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


COMMANDS = (
    Command(
        "fit",
        "train a classifier of graphs, and write the model",
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
        _declare_model,
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
