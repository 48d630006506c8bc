"""Fitted estimators in files: weights as safetensors, everything else as JSON in the header of the same file.

Nothing in such a file is code. Reading one builds the network that the JSON describes without memory of its own,
compares it with the tensors that the file holds, and only then takes those as its weights: so neither a file cut off
nor one made by a stranger can do more than be refused.
"""

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet import __version__, files
from bellnet.data import Encoding
from bellnet.errors import BellnetError, DataError
from bellnet.estimator.options import check_options
from bellnet.estimator.plain import options_from_json, options_to_json
from bellnet.estimator.scaling import FeatureScaling

if TYPE_CHECKING:
    from bellnet.estimator.base import GraphEstimator

FORMAT = "bellnet estimator"
VERSION = 2
HEADER = "bellnet"
"""The entry of the header of the safetensors file that holds the JSON."""


def save(estimator: "GraphEstimator", path: str | PathLike[str]) -> None:
    """Write a fitted estimator; the file is replaced as a whole or not at all."""
    from safetensors.torch import save as to_bytes

    described = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"bellnet {__version__}",
        "estimator": type(estimator).__name__,
        "options": options_to_json(estimator.get_params(deep=False)),
        "labels": estimator._labels_to_json(),
        "encoding": estimator.encoding_.to_json(),
        "scaling": estimator.scaling_.to_json(),
        "history": estimator.history_,
        "kept_epoch": estimator.kept_epoch_,
    }
    weights = {name: value.detach().cpu().contiguous() for name, value in estimator.net_.state_dict().items()}
    _replace(Path(path), to_bytes(weights, {HEADER: json.dumps(described)}))


def load(path: str | PathLike[str]) -> Any:
    """The estimator that `save` wrote: a `GraphClassifier` or `GraphRegressor` that predicts what that one predicted.

    Args:
        path: The file. It may come from anywhere: reading it runs no code of the file.
    """
    described, weights = _read(Path(path))
    try:
        return _build(described, weights)
    except (BellnetError, KeyError, TypeError, ValueError, RuntimeError, OverflowError) as reason:
        what = f"it has no {reason}" if isinstance(reason, KeyError) else str(reason)
        raise DataError(
            f"load({str(path)!r}): this is a file of a bellnet estimator, but not a sound one: {what}\nSave it again."
        ) from reason


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    call = f"load({str(path)!r})"
    if not path.is_file():
        what = "this is a directory" if path.is_dir() else "there is no such file"
        raise DataError(f"{call}: {what}.\nGive the file that save(path) wrote.")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(HEADER)
            weights = {} if header is None else {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except OSError as reason:
        raise DataError(f"{call}: this file cannot be read: {reason.strerror or reason}.") from reason
    except SafetensorError as reason:
        raise DataError(
            f"{call}: this file is cut off, or it never was a safetensors file ({reason}).\n"
            "Give the file that save(path) wrote; if it was copied, copy it again."
        ) from reason
    try:
        described = None if header is None else json.loads(header)
    except ValueError:
        described = None
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(
            f"{call}: this is a safetensors file, but not one of a bellnet estimator.\n"
            "Give the file that save(path) wrote."
        )
    if described.get("version") != VERSION:
        raise DataError(
            f"{call}: this file has version {described.get('version')!r}, but here only version {VERSION} can be read; "
            f"it was written by {described.get('written_by')}.\nUpdate bellnet, or save the estimator again."
        )
    return described, weights


def _build(described: dict[str, Any], weights: dict[str, Tensor]) -> "GraphEstimator":
    from bellnet.estimator.classifier import GraphClassifier
    from bellnet.estimator.regressor import GraphRegressor

    kinds: dict[str, type[GraphEstimator]] = {kind.__name__: kind for kind in (GraphClassifier, GraphRegressor)}
    name = described["estimator"]
    if name not in kinds:
        raise DataError(f"estimator must be one of {', '.join(kinds)}, not {name!r}.")
    options = options_from_json(described["options"])
    expected = set(kinds[name]().get_params(deep=False))
    if options.keys() != expected:
        raise DataError(f"its options must be {', '.join(sorted(expected))}, not {', '.join(sorted(options))}.")
    check_options(name, {**options, "device": "auto"})
    estimator = kinds[name](**options)
    estimator._labels_from_json(described["labels"])
    estimator.encoding_ = Encoding.from_json(described["encoding"])
    estimator.scaling_ = FeatureScaling.from_json(described["scaling"])
    estimator.history_, estimator.kept_epoch_ = list(described["history"]), int(described["kept_epoch"])
    if len(weights) < len(options["channels"]) + len(options["hidden"]):
        raise DataError("it holds fewer tensors than its network has layers.")
    with torch.device("meta"):
        net = estimator._make_net(estimator.encoding_)
    shapes = {name: (value.shape, value.dtype) for name, value in net.state_dict().items()}
    if shapes != {name: (value.shape, value.dtype) for name, value in weights.items()}:
        raise DataError("its tensors are not those of the network that it describes.")
    net.load_state_dict(weights, assign=True)
    estimator.net_ = net.eval()
    return estimator


def _replace(path: Path, content: bytes) -> None:
    """Write a file that is replaced as a whole or not at all."""
    try:
        files.write_files({path: content})
    except OSError as reason:
        raise DataError(f"save({str(path)!r}): this file cannot be written: {files.words(reason)}") from reason
