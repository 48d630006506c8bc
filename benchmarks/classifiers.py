"""How good the classifier's defaults are: nested cross-validation beside a Weisfeiler-Lehman kernel with an SVM.

    python -m benchmarks.classifiers MUTAG PROTEINS IMDB-BINARY --data DIR --out DIR

Both see the same splits, those published with the data sets in DIR/splits. Whatever is chosen (the epoch here, the
depth of the kernel and the SVM's C there) is chosen within the training graphs of a split; its test graphs are looked
at once. Every finished split is a line in records.jsonl, and is not run again. Seconds are processor time.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellnet.data import Graph, tu
from bellnet.experiments import Records
from bellnet.experiments.machine import circumstances

NAMES = ("MUTAG", "PROTEINS", "IMDB-BINARY")
DEPTHS = (1, 2, 3, 4, 5)
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
CHOSEN_BY = 5
"""Parts of the training graphs between which the kernel's options are compared."""

Method = Callable[[list[Graph], Any, list[Graph]], tuple[Any, dict[str, Any]]]


def ours(train: list[Graph], labels: Any, test: list[Graph]) -> tuple[Any, dict[str, Any]]:
    """The classifier with its default arguments."""
    from bellnet.estimator import GraphClassifier

    model = GraphClassifier(verbose=False).fit(train, labels)
    return model.predict(test), {"epochs": len(model.history_), "kept_epoch": model.kept_epoch_}


def kernel(train: list[Graph], labels: Any, test: list[Graph]) -> tuple[Any, dict[str, Any]]:
    """GraKeL's Weisfeiler-Lehman subtree kernel with scikit-learn's SVM; depth and C are chosen by cross-validation."""
    from grakel.kernels import VertexHistogram, WeisfeilerLehman
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    known, asked = [_for_grakel(graph) for graph in train], [_for_grakel(graph) for graph in test]
    best: tuple[float, int, float] = (-1.0, 0, 0.0)
    parts = StratifiedKFold(CHOSEN_BY, shuffle=True, random_state=0)
    grams = {}
    for depth in DEPTHS:
        maker = WeisfeilerLehman(n_iter=depth, base_graph_kernel=VertexHistogram, normalize=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grams[depth] = maker.fit_transform(known), maker.transform(asked)
        for penalty in PENALTIES:
            svm = SVC(C=penalty, kernel="precomputed")
            score = cross_val_score(svm, grams[depth][0], labels, cv=parts).mean()
            best = max(best, (score, depth, penalty), key=lambda found: found[0])
    _, depth, penalty = best
    svm = SVC(C=penalty, kernel="precomputed").fit(grams[depth][0], labels)
    return svm.predict(grams[depth][1]), {"depth": depth, "C": penalty}


def _for_grakel(graph: Graph) -> Any:
    """Edges and node labels as GraKeL wants them; nodes without labels are labelled by their degree."""
    import grakel

    edges = [tuple(edge) for edge in graph.edge_index.T.tolist()]
    if graph.node_labels is not None:
        labels = graph.node_labels.tolist()
    else:
        labels = np.bincount(graph.edge_index[0].numpy(), minlength=graph.n).tolist()
    return grakel.Graph(dict.fromkeys(edges, 1.0) or {(0, 0): 0.0}, node_labels=dict(enumerate(labels)))


METHODS: dict[str, Method] = {"bellnet": ours, "WL + SVM": kernel}


def run(names: Sequence[str], data: Path, out: Path, *, splits: int, methods: Sequence[str]) -> None:
    """Run what is not recorded yet."""
    records = Records(out)
    records.repair()
    done = records.finished()
    for name in names:
        graphs = tu.load(name, data=data)
        if graphs.splits is None:
            raise SystemExit(f"there are no splits for {name}: {data / 'splits' / f'{name}.json'} is missing")
        for number, (train, test) in enumerate(graphs.splits[:splits]):
            for method in methods:
                key = f"{name} / split {number} / {method}"
                if key in done:
                    continue
                start = time.process_time()
                known, labels = graphs.part(train)
                asked, truth = graphs.part(test)
                assert labels is not None
                assert truth is not None
                found, chosen = METHODS[method](known, labels.numpy(), asked)
                accuracy = float((found == truth.numpy()).mean())
                seconds = round(time.process_time() - start, 1)
                fields = {"data": name, "split": number, "method": method, "accuracy": accuracy, "chosen": chosen}
                records.append({"kind": "cell", "key": key, **fields, "seconds": seconds, **circumstances()})
                print(f"{key}: {100 * accuracy:.1f} %, {seconds:.0f} s, {chosen}", flush=True)


def table(out: Path) -> str:
    """What is recorded, as a markdown table: mean and standard deviation over the splits."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in Records(out).finished().values():
        found.setdefault((record["data"], record["method"]), []).append(record)
    names = list(dict.fromkeys(name for name, _ in found))
    lines = [
        "| accuracy, % | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
        *(
            f"| {method} | " + " | ".join(_cell(found.get((name, method))) for name in names) + " |"
            for method in METHODS
        ),
        "| processor time, s, bellnet | " + " | ".join(_seconds(found.get((name, "bellnet"))) for name in names) + " |",
    ]
    return "\n".join(lines)


def _cell(records: list[dict[str, Any]] | None) -> str:
    if not records:
        return "-"
    values = 100 * np.array([record["accuracy"] for record in records])
    return f"{values.mean():.1f} ± {values.std():.1f}" + ("" if len(values) == 10 else f" ({len(values)} splits)")


def _seconds(records: list[dict[str, Any]] | None) -> str:
    return f"{np.mean([record['seconds'] for record in records]):.0f}" if records else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classifiers", description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", metavar="NAME", nargs="*", default=NAMES, help=f"data sets (default {' '.join(NAMES)})"
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="a folder of zips, with splits/NAME.json"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/classifiers"), metavar="DIR")
    parser.add_argument("--splits", type=int, default=10, metavar="N", help="the first N splits (default 10)")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=tuple(METHODS), help="default: all")
    options = parser.parse_args(arguments)
    try:
        run(options.names, options.data, options.out, splits=options.splits, methods=options.method)
    except KeyboardInterrupt:
        print(f"\nStopped. {options.out} keeps the splits that were finished; the same command goes on.")
    text = table(options.out)
    (options.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}\n\nmean and standard deviation over the splits; wrote {options.out / 'table.md'}")


if __name__ == "__main__":
    main()
