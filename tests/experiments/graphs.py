"""A data set of small graphs on disk, under the name of a real one, and cells that learn it in a second."""

import json
from dataclasses import replace

from experiments.graph_cell import GraphCell
from tests.data.tu.small import write_folder

COUNT = 30

OPTIONS = {
    "layout": "dense",
    "channels": (4, 6),
    "hidden": (8,),
    "batch_size": 3,
    "min_learning_rate": 1e-5,
    "learning_rate": 0.003,
    "decay": 0.5,
    "epochs": 3,
    "decay_every": 2,
}
TINY = GraphCell(method="ign", name="MUTAG", split=0, options=OPTIONS, protocol="fixed")


def write_set(folder, name="MUTAG", *, splits=True):
    """Cycles (class -1) and paths (class 1) of 3 to 5 nodes, with labels 2 and 7 on the nodes; return the folder."""
    edges, owners, labels, node_labels = [], [], [], []
    for graph in range(COUNT):
        n, first, is_cycle = 3 + graph % 3, len(owners), graph % 2 == 0
        for node in range(n - (not is_cycle)):
            ends = first + node + 1, first + (node + 1) % n + 1
            edges += [ends, ends[::-1]]
        owners += [graph + 1] * n
        labels.append(-1 if is_cycle else 1)
        node_labels += [2, *[7] * (n - 1)]
    files = {
        "A": "".join(f"{a}, {b}\n" for a, b in edges),
        **{
            ending: "".join(f"{value}\n" for value in values)
            for ending, values in (("graph_indicator", owners), ("graph_labels", labels), ("node_labels", node_labels))
        },
    }
    write_folder(folder / name, name, files)
    if splits:
        folds = [[list(range(fold, COUNT, 5)), None] for fold in range(5)]
        folds = [{"train": [p for p in range(COUNT) if p not in test], "test": test} for test, _ in folds]
        (folder / "splits").mkdir(exist_ok=True)
        (folder / "splits" / f"{name}.json").write_text(json.dumps({"folds": folds}))
    return folder


def tiny(**changes):
    """The tiny cell with some fields or options changed."""
    options = {name: changes.pop(name, value) for name, value in OPTIONS.items()}
    return replace(TINY, options=options, **changes)


def classified(cell, accuracy, *, validation=None, curves=None):
    """A final record of a cell of graphs, as if it had been run."""
    return {
        "key": cell.key,
        "config": cell.to_json(),
        "accuracy": accuracy,
        "validation": validation,
        "best_epoch": None,
        "parameters": 1,
        "seconds": 1.0,
        "curves": curves or {},
        "versions": {"torch": "2"},
        "commit": None,
        "machine": {"cores": 1},
    }
