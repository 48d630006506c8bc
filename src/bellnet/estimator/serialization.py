"""Files of fitted estimators: weights as safetensors, everything else as JSON in the header of the same file.

Such a file contains no code. Reading builds the network that the JSON describes on the meta device, compares it with
the tensors of the file, and only then takes those as its weights. So a truncated or forged file is refused without
further effect. A checksum shows damage, but not who wrote the file.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bellnet import __version__
from bellnet._utils import files
from bellnet._utils.json_text import read_json
from bellnet.data import Encoding
from bellnet.errors import BellnetError, DataError, OptionError
from bellnet.estimator.labels import Array
from bellnet.estimator.model import Ensemble, NetConfig
from bellnet.estimator.options import LAYOUTS, check_options, mistake_in_device
from bellnet.estimator.validation import FeatureScaling

if TYPE_CHECKING:
    from bellnet.estimator.base import GraphEstimator

FORMAT = "bellnet estimator"
VERSION = 1
HEADER = "bellnet"
"""The entry of the safetensors header with the JSON."""
UNSOUND = (BellnetError, KeyError, TypeError, ValueError, RuntimeError, OverflowError)
"""The errors of building an estimator from a wrong description."""
MAX_CLASS_BYTES = 2**28
"""The most memory of an array of classes from a file, in which each takes as much as the longest."""
NUMBER_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def save(estimator: "GraphEstimator", path: str | PathLike[str]) -> None:
    """Write a fitted estimator to a file atomically, if `load` can read it."""
    from safetensors.torch import save as to_bytes

    described: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"bellnet {__version__}",
        "estimator": type(estimator).__name__,
        "options": {name: to_json(value) for name, value in estimator.get_params(deep=False).items()},
        "labels": estimator._labels_to_json(),
        "encoding": estimator.encoding_.to_json(),
        "scaling": asdict(estimator.scaling_),
        "layout": estimator.layout_,
        "n_estimators": estimator.n_estimators_,
        "n_nodes": estimator.n_nodes_,
        "history": estimator.history_,
        "best_epoch": estimator.best_epoch_,
    }
    weights = {name: value.detach().cpu().contiguous() for name, value in estimator.ensemble_.state_dict().items()}
    described["checksum"] = checksum(described, weights)
    header = json.dumps(described)
    try:
        _build(_described(header), weights)
    except UNSOUND as reason:
        raise DataError(
            f"save({str(path)!r}): the file could not be loaded: {_words(reason)}\n"
            "Set the options as they were in the fit, or fit again."
        ) from reason
    try:
        files.write_files({Path(path): to_bytes(weights, {HEADER: header})})
    except OSError as reason:
        raise DataError(f"save({str(path)!r}): this file cannot be written: {files.words(reason)}") from reason


def load(path: str | PathLike[str], *, device: str | torch.device | None = None) -> Any:
    """Read the `GraphClassifier` or `GraphRegressor` that `save` wrote; it makes the same predictions.

    Args:
        path: The file. It may come from anywhere, since reading it runs no code of the file.
        device: Replaces the option `device` in the file.
    """
    call = f"load({str(path)!r})"
    described, weights = _read(Path(path))
    try:
        estimator = _build(described, weights)
    except UNSOUND as reason:
        raise DataError(
            f"{call}: this file of a bellnet estimator is invalid: {_words(reason)}\nSave the estimator again."
        ) from reason
    if device is not None:
        estimator.device = device
    if mistake := mistake_in_device(estimator.device):
        kind = DataError if device is None else OptionError
        raise kind(f"{call}: {mistake}\nChoose another: load(path, device='auto'), or --device auto in the shell.")
    return estimator


def checksum(described: dict[str, Any], weights: dict[str, Tensor]) -> str:
    """SHA-256 of the description without the checksum, and of the names, types, shapes and values of all tensors."""
    content = {name: value for name, value in described.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, value in sorted(weights.items()):
        digest.update(json.dumps([name, str(value.dtype), list(value.shape)]).encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    call = f"load({str(path)!r})"
    if not path.is_file():
        what = files.special(path.stat().st_mode) if path.exists() else None
        raise DataError(f"{call}: {what or 'there is no such file'}.\nGive the file that save(path) wrote.")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(HEADER)
            weights = {} if header is None else {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except OSError as reason:
        raise DataError(f"{call}: this file cannot be read: {reason.strerror or reason}.") from reason
    except SafetensorError as reason:
        raise DataError(
            f"{call}: this is not a safetensors file, or it is incomplete ({reason}).\n"
            "Give the file that save(path) wrote; if it was copied, copy it again."
        ) from reason
    try:
        described = None if header is None else _described(header)
    except DataError as reason:
        raise DataError(
            f"{call}: the description in this file cannot be read: {reason}\nGive the file that save(path) wrote."
        ) from reason
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(
            f"{call}: this is a safetensors file, but not one of a bellnet estimator.\n"
            "Give the file that save(path) wrote."
        )
    version = described.get("version")
    if type(version) is not int or version != VERSION:
        raise DataError(
            f"{call}: expected a file of format version {VERSION}, got version {version!r}; it was written by "
            f"{described.get('written_by')}.\nUse the version of bellnet that wrote it, or fit and save again."
        )
    return described, weights


def _described(header: str) -> Any:
    """The JSON of a header. Losses are not finite if a fit diverged after the best epoch."""
    return read_json(header, non_finite="history")


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Prefix errors with the name of the field that is read."""
    try:
        yield
    except UNSOUND as reason:
        raise DataError(f"{name}: {_words(reason)}") from reason


def _words(reason: Exception) -> str:
    return f"it has no {reason}" if isinstance(reason, KeyError) else str(reason)


def _build(described: dict[str, Any], weights: dict[str, Tensor]) -> "GraphEstimator":
    from bellnet.estimator.classifier import GraphClassifier
    from bellnet.estimator.regressor import GraphRegressor

    if described["checksum"] != checksum(described, weights):
        raise DataError("its checksum is not that of its content; it was damaged or changed after it was written.")
    kinds: dict[str, type[GraphEstimator]] = {kind.__name__: kind for kind in (GraphClassifier, GraphRegressor)}
    name = described["estimator"]
    if name not in kinds:
        raise DataError(f"estimator must be one of {', '.join(kinds)}, not {name!r}.")
    with _field("options"):
        options = options_from_json(described["options"])
    expected = set(kinds[name]().get_params(deep=False))
    if options.keys() != expected:
        raise DataError(f"its options must be {', '.join(sorted(expected))}, not {', '.join(sorted(options))}.")
    check_options(name, {**options, "device": "auto"})
    estimator = kinds[name](**options)
    with _field("labels"):
        estimator._labels_from_json(described["labels"])
    with _field("options"):
        estimator._check_label_options(name)
    for chosen in ("layout", "n_estimators"):
        value, option = described[chosen], options[chosen]
        is_possible = value in LAYOUTS if chosen == "layout" else type(value) is int and value >= 1
        if not is_possible or option not in ("auto", value):
            raise DataError(f"{chosen} must be one that its options allow, not {value!r}.")
        setattr(estimator, f"{chosen}_", value)
    with _field("encoding"):
        estimator.encoding_ = Encoding.from_json(described["encoding"])
        estimator.encoding_.check_node_channels(name, estimator.node_channels)
    with _field("scaling"):
        estimator.scaling_ = FeatureScaling.from_json(described["scaling"])
        estimator.scaling_.check_fits(estimator.encoding_)
    estimator.history_, estimator.best_epoch_ = _history(described, estimator._score_name)
    counts = described["n_nodes"]
    if not (isinstance(counts, list) and list(map(type, counts)) == [int, int] and 1 <= counts[0] <= counts[1]):
        raise DataError(f"n_nodes must be the smallest and the largest number of nodes of a graph, not {counts!r}.")
    estimator.n_nodes_ = counts[0], counts[1]
    estimator.ensemble_ = _ensemble(estimator._net_config(), weights)
    return estimator


def _ensemble(config: NetConfig, weights: dict[str, Tensor]) -> Ensemble:
    """An ensemble with weights, which must be those of its architecture."""
    layers = config.n_estimators * (len(config.widths) - 1)
    if len(weights) < layers:  # compared before an ensemble is built of what may be a billion layers
        raise DataError(f"it describes {layers} layers but holds {len(weights)} tensors.")
    held = sum(map(Tensor.numel, weights.values()))
    if held < config.min_weights:
        raise DataError(f"it describes at least {config.min_weights} weights but holds {held} numbers.")
    ensemble = Ensemble.on_meta(config)
    shapes, found = (
        {name: (value.shape, value.dtype) for name, value in tensors.items()}
        for tensors in (ensemble.state_dict(), weights)
    )
    if shapes != found:
        raise DataError("its tensors are not those of the network that it describes.")
    for name, value in weights.items():
        if not bool(value.isfinite().all()):
            raise DataError(f"its tensor {name!r} holds NaN or infinite numbers.")
    ensemble.load_state_dict(weights, assign=True)
    return ensemble.eval()


def _history(described: dict[str, Any], score: str) -> tuple[list[dict[str, Any]], int]:
    history, best = described["history"], described["best_epoch"]
    if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
        raise DataError("its history must be a list of epochs.")
    names = {"epoch", "loss", "validation_loss", score, f"validation_{score}"}
    for epoch, record in enumerate(history):
        number, loss = record.get("epoch"), record.get("loss")
        are_numbers = all(value is None or type(value) in (int, float) for value in record.values())
        if record.keys() != names or not are_numbers or loss is None or type(number) is not int or number != epoch:
            raise DataError(
                f"history[{epoch}] must have epoch {epoch}, a loss, and numbers or null for "
                f"{', '.join(sorted(names - {'epoch', 'loss'}))}, not {record!r}."
            )
    if type(best) is not int or not 0 <= best < len(history):
        raise DataError(f"best_epoch must be one of its {len(history)} epochs, not {best!r}.")
    return history, best


def to_json(value: Any) -> Any:
    """An option as JSON: a dict as pairs, a random state of NumPy as None."""
    if isinstance(value, Mapping):
        return {"pairs": [[to_json(key), to_json(weight)] for key, weight in value.items()]}
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else str(value) if isinstance(value, torch.device) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise DataError(f"save(path): {value!r} cannot be written to a file; options must be numbers or strings.")


def options_from_json(stored: Any) -> dict[str, Any]:
    """Options from their JSON; lists become tuples."""
    if not isinstance(stored, dict):
        raise DataError(f"its options must be named, not {stored!r}.")
    options: dict[str, Any] = {}
    for name, value in stored.items():
        if isinstance(value, dict):
            pairs = value.get("pairs")
            if value.keys() != {"pairs"} or not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
                raise DataError(f'{name} must be {{"pairs": [[name, number], ...]}}, not {value!r}.')
            value = dict(pairs)
        options[name] = tuple(value) if isinstance(value, list) else value
    return options


def _is_pair(stored: Any) -> bool:
    return isinstance(stored, list) and len(stored) == 2 and not any(isinstance(item, list | dict) for item in stored)


def classes_to_json(classes: Array) -> dict[str, Any]:
    """Classes and their type: numbers, strings, or strings as objects."""
    strings = all(isinstance(name, str) for name in classes.tolist())
    kind = "object" if classes.dtype == object else "str" if strings else classes.dtype.name
    if kind not in (*NUMBER_TYPES, "str") and not (kind == "object" and strings):
        raise DataError(
            f"save(path): classes in a file must be numbers of 8 to 64 bits or strings, but these are {classes.dtype}, "
            f"the first is {classes[0]!r}.\nFit with strings: y = [str(label) for label in y]."
        )
    return {"kind": kind, "names": classes.tolist()}


def classes_from_json(stored: Any) -> Array:
    """The inverse of `classes_to_json`."""
    kind, names = stored["kind"], stored["names"]
    if kind not in (*NUMBER_TYPES, "str", "object") or not isinstance(names, list) or len(names) < 2:
        raise DataError("its classes must be a list of at least two numbers or strings.")
    if kind in ("str", "object") and not all(isinstance(name, str) for name in names):
        raise DataError("its classes must be strings.")
    if kind == "str" and (needed := 4 * len(names) * max(map(len, names))) > MAX_CLASS_BYTES:
        raise DataError(f"its classes would take {needed / 1e9:.0f} GB as an array.")
    found = _numbers(kind, names) if kind in NUMBER_TYPES else np.array(names, dtype=None if kind == "str" else kind)
    if any(one >= other for one, other in pairwise(found.tolist())):
        raise DataError("its classes must be sorted, and each there once.")
    return found


def _numbers(kind: str, names: list[Any]) -> Array:
    """Classes that are numbers of a type exactly."""
    types = (bool,) if kind == "bool" else (int, float) if kind.startswith("float") else (int,)
    if all(type(name) in types for name in names):
        with suppress(OverflowError), np.errstate(over="ignore"):
            found = np.array(names, dtype=kind)
            if np.isfinite(found).all() and found.tolist() == names:
                return found
    raise DataError(f"its classes must be numbers of type {kind}.")
