"""Model files: the same predictions, atomic saves, and no code in them is run."""

import copy
import json
import math
import os
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load as tensors_of
from safetensors.torch import save_file

from bellnet.data import generated
from bellnet.errors import DataError, OptionError
from bellnet.estimator import GraphClassifier, load
from bellnet.estimator.labels import count_labels
from bellnet.estimator.model import LabelNet
from bellnet.estimator.serialization import checksum
from tests.estimator.small import classifier, leaves, regressor, with_features
from tests.estimator.stored import changed


@pytest.fixture(scope="module")
def fitted():
    graphs, labels = leaves()
    names = np.array(["ja", "nein"])[labels]
    return classifier(class_weight={"ja": 2.0}, dropout=0.1).fit([with_features(graph) for graph in graphs], names)


@pytest.fixture
def featured():
    return [with_features(graph) for graph in leaves()[0]]


@pytest.fixture
def file(fitted, tmp_path):
    fitted.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_loaded_estimator_has_the_same_predictions(fitted, file, featured):
    again = load(file)
    assert type(again) is GraphClassifier
    assert np.array_equal(again.predict_proba(featured), fitted.predict_proba(featured))
    assert np.array_equal(again.predict(featured), fitted.predict(featured))


def test_a_loaded_estimator_has_the_same_attributes(fitted, file):
    again = load(file)
    assert again.get_params() == fitted.get_params()
    assert again.classes_.tolist() == fitted.classes_.tolist()
    assert again.classes_.dtype == fitted.classes_.dtype
    assert (again.encoding_, again.scaling_) == (fitted.encoding_, fitted.scaling_)
    assert (again.history_, again.best_epoch_) == (fitted.history_, fitted.best_epoch_)
    assert again.n_nodes_ == fitted.n_nodes_ is not None


def test_a_new_process_has_the_same_predictions(tmp_path):
    graphs, _ = generated.leaf_pairs(10)
    expected = {}
    for make in (classifier, regressor):
        for target in ("graph", "node", "edge"):
            labels = [
                np.full(count, graph.n % 2) for graph, count in zip(graphs, count_labels(graphs, target), strict=True)
            ]
            model = make(target=target).fit(graphs, np.concatenate(labels) if target == "graph" else labels)
            name = f"{make.__name__}-{target}"
            model.save(tmp_path / name)
            expected[name] = np.concatenate([np.atleast_1d(part) for part in predictions_of(model, graphs)])
    program = """
import sys
from pathlib import Path
import numpy as np
from bellnet.data import generated
from bellnet.estimator import load
graphs, _ = generated.leaf_pairs(10)
for path in sorted(Path(sys.argv[1]).iterdir()):
    model = load(path)
    found = getattr(model, "predict_proba", model.predict)(graphs)
    np.save(path.with_suffix(".npy"), np.concatenate([np.atleast_1d(part) for part in found]))
"""
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    for name, found in expected.items():
        assert np.array_equal(np.load(tmp_path / f"{name}.npy"), found), name
    assert len(expected) == 6


def predictions_of(model, graphs):
    return getattr(model, "predict_proba", model.predict)(graphs)


@pytest.mark.parametrize(
    "classes", [[0, 1], [-3, 7], [False, True], [1.5, 2.5], ["a", "ü"], np.array(["x", "yz"], dtype=object)], ids=str
)
def test_classes_of_every_type_are_saved(classes, tmp_path):
    graphs, labels = leaves()
    names = np.asarray(classes)[labels]
    if names.dtype == np.float64:
        names = names * 2  # whole numbers: fractions would not be classes
    model = classifier(max_epochs=1).fit(graphs, names)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.predict(graphs), model.predict(graphs))


def test_a_loaded_estimator_can_be_fitted_and_saved_again(file, tmp_path, featured):
    again = load(file)
    again.save(tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == file.read_bytes()
    again.fit(featured, np.array(["ja", "nein"])[leaves()[1]])


def test_random_states_of_numpy_become_none(tmp_path):
    graphs, labels = leaves()
    classifier(random_state=np.random.RandomState(0)).fit(graphs, labels).save(tmp_path / "model")
    assert load(tmp_path / "model").random_state is None


def test_loading_draws_no_random_numbers_and_copies_the_file(file, featured):
    state = torch.get_rng_state()
    model = load(file)
    assert torch.equal(torch.get_rng_state(), state)
    before = model.predict_proba(featured)
    file.write_bytes(b"\0" * file.stat().st_size)
    assert np.array_equal(model.predict_proba(featured), before)


def test_a_truncated_file_is_refused(file):
    content = file.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1]:
        file.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"this is not a safetensors file, or it is incomplete"):
            load(file)
    file.write_bytes(content + b"\0")
    with pytest.raises(DataError):
        load(file)


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"\x80\x04cposix\nsystem\n", b"{}", os.urandom(2000)])
def test_a_file_of_another_format_is_refused(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(DataError, match=r"load\('.*model'\): this is not a safetensors file, or it is incomplete"):
        load(tmp_path / "model")


def test_a_pickle_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "was here",))

    torch.save({"model": Evil()}, tmp_path / "model")
    with pytest.raises(DataError):
        load(tmp_path / "model")
    assert not (tmp_path / "was here").exists()


def test_a_safetensors_file_of_another_program_is_refused(tmp_path):
    save_file({"weight": torch.zeros(3)}, tmp_path / "model")
    with pytest.raises(DataError, match="a safetensors file, but not one of a bellnet estimator"):
        load(tmp_path / "model")


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        load(tmp_path / "nothing")
    with pytest.raises(DataError, match=r"load\('.*'\): it is a directory\.\nGive the file that save\(path\) wrote\."):
        load(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="pipes have names there")
def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError) as refusal:
        load(tmp_path / "pipe")
    assert str(refusal.value) == (
        f"load('{tmp_path / 'pipe'}'): it is a pipe, not a file.\nGive the file that save(path) wrote."
    )


def test_a_rewritten_file_can_be_loaded(file, fitted, featured):
    changed(file, lambda described: None)
    assert np.array_equal(load(file).predict(featured), fitted.predict(featured))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d.update(version=2),
            "expected a file of format version 1, got version 2; it was written by bellnet",
        ),
        (lambda d: d.update(version=[3]), r"expected a file of format version 1, got version \[3\]"),
        (lambda d: d.update(version=True), "expected a file of format version 1, got version True"),
        (lambda d: d.pop("version"), "expected a file of format version 1, got version None"),
        (lambda d: d.pop("checksum"), "it has no 'checksum'"),
        (lambda d: d.pop("layout"), "it has no 'layout'"),
        (lambda d: d.pop("n_estimators"), "it has no 'n_estimators'"),
        (lambda d: d.pop("n_nodes"), "it has no 'n_nodes'"),
        (
            lambda d: d.update(n_nodes=None),
            "n_nodes must be the smallest and the largest number of nodes of a graph, not None",
        ),
        (
            lambda d: d.update(instead='{"format": ' + "[" * 10**5),
            "cannot be read: this is JSON nested too deeply to be read",
        ),
        (lambda d: d.update(encoding="[" * 10**5), "this is JSON nested too deeply to be read"),
        (lambda d: d.update(format="other"), "not one of a bellnet estimator"),
        (lambda d: d.update(estimator="os.system"), "estimator must be one of GraphClassifier, GraphRegressor"),
        (lambda d: d.pop("encoding"), "it has no 'encoding'"),
        (lambda d: d.update(encoding="{}"), "this is no encoding"),
        (lambda d: d["options"].update(layers=3), "its options must be"),
        (lambda d: d["options"].pop("pool"), "its options must be"),
        (lambda d: d["options"].update(channels=[5]), "its tensors are not those of the network that it describes"),
        (lambda d: d["options"].update(channels=[10**9]), "it describes at least 14000000016 weights but holds"),
        (lambda d: d["options"].update(hidden=[10**9]), "it describes at least .* weights but holds"),
        (
            lambda d: d["options"].update(hidden=[2**31]),
            r"hidden must be .* from 1 to 2\*\*31 - 1 .*, not \(2147483648,\)",
        ),
        (lambda d: d["options"].update(channels=[1] * 10**6), "it describes 1000002 layers but holds 7 tensors"),
        (lambda d: encoded(d, edge_features=10**9), "it describes at least .* weights but holds"),
        (lambda d: encoded(d, node_features=10**18), "it scales 3 node features, but encodes 10{18}"),
        (lambda d: encoded(d, node_labels=[2**63]), "node_labels must be a tuple of ascending int64"),
        (lambda d: d["options"].update(channels="wide"), "channels must be the widths of the layers"),
        (lambda d: d["options"].update(target="world"), "target must be one of 'graph', 'node', 'edge', not 'world'"),
        (lambda d: d.update(options=[1, 2]), "its options must be named"),
        (lambda d: d["labels"].update(names=["ja", "jain", "nein"]), "its tensors are not those"),
        (lambda d: d["labels"].update(names=["a", 3]), "its classes must be strings"),
        (lambda d: d["labels"].update(names=["nein", "ja"]), "its classes must be sorted, and each there once"),
        (lambda d: d["labels"].update(names=["ja", "ja"]), "its classes must be sorted, and each there once"),
        (lambda d: d["labels"].update(kind="object", names=["b", "a"]), "its classes must be sorted, and each there"),
        (lambda d: d.update(labels={"kind": "int64", "names": [1, 1]}), "its classes must be sorted, and each there"),
        (lambda d: d.update(labels={"kind": "int64", "names": [1, 1.5]}), "its classes must be numbers of type int64"),
        (lambda d: d.update(labels={"kind": "int64", "names": [1, 2**63]}), "its classes must be numbers of type int"),
        (lambda d: d.update(labels={"kind": "int8", "names": [1, 300]}), "its classes must be numbers of type int8"),
        (lambda d: d.update(labels={"kind": "int8", "names": [0, True]}), "its classes must be numbers of type int8"),
        (lambda d: d.update(labels={"kind": "uint8", "names": [-1, 3]}), "its classes must be numbers of type uint8"),
        (lambda d: d.update(labels={"kind": "bool", "names": ["a", "b"]}), "its classes must be numbers of type bool"),
        (lambda d: d.update(labels={"kind": "bool", "names": [0, 1]}), "its classes must be numbers of type bool"),
        (lambda d: d.update(labels={"kind": "float64", "names": [1, math.nan]}), r"labels\.names\[1\] must be a fin"),
        (lambda d: d.update(labels={"kind": "float64", "names": [1, math.inf]}), r"labels\.names\[1\] must be a fin"),
        (lambda d: d.update(labels={"kind": "float32", "names": [1, 1e300]}), "must be numbers of type float32"),
        (lambda d: d.update(labels={"kind": "float64", "names": [1, [2]]}), "must be numbers of type float64"),
        (lambda d: d["options"].update(class_weight="foo"), "class_weight must be None, 'balanced' or a dict"),
        (
            lambda d: d["options"].update(class_weight={"pairs": [["x", 1]]}),
            "class_weight has 'x', which is not a class",
        ),
        (lambda d: d["options"].update(class_weight={"pairs": [["ja", -1]]}), "class_weight must hold finite numbers"),
        (lambda d: d["options"].update(random_state="x"), "random_state must be an integer from 0 to"),
        (lambda d: d["options"].update(verbose={"pairs": [[1, 2]]}), r"verbose must be True or False, not \{1: 2\}"),
        (lambda d: d["labels"].update(names=["a" * 10**5] + [""] * 10**4), "its classes would take 4 GB as an array"),
        (lambda d: d["labels"].update(kind="O8,>U999999999"), "its classes must be a list of at least two"),
        (lambda d: d.update(labels=None), "this file of a bellnet estimator is invalid"),
        (lambda d: d.update(scaling={"node": 3, "edge": None}), "scaling: 'int' object is not subscriptable"),
        (
            lambda d: d.update(scaling={"node": {"mean": "x", "scale": []}, "edge": None}),
            "mean and scale must be lists of the same length",
        ),
        (lambda d: d.update(scaling=7), "scaling: 'int' object is not subscriptable"),
        (lambda d: d["scaling"]["node"].update(mean=[0.0, math.nan, 0.0]), r"scaling\.node\.mean\[1\] must be a"),
        (
            lambda d: d["scaling"]["node"].update(scale=[1.0, 0.0, 1.0]),
            "mean must be numbers and scale positive numbers, not",
        ),
        (lambda d: d["scaling"]["node"].update(scale=[1.0]), "mean and scale must be lists of the same length"),
        (lambda d: d["scaling"].update(node={"mean": [0.0], "scale": [1.0]}), "scales 1 node features, but encodes 3"),
        (lambda d: d["scaling"].update(edge={"mean": [0.0], "scale": [1.0]}), "scales 1 edge features, but encodes 0"),
        (
            lambda d: d["options"].update(max_epochs=2.5),
            r"max_epochs must be 'auto' or an integer from 1 to 2\*\*63 - 1, not 2\.5",
        ),
        (lambda d: d.update(history=None), "its history must be a list of epochs"),
        (lambda d: d["history"].append("an epoch"), "its history must be a list of epochs"),
        (lambda d: d.update(best_epoch=2), "best_epoch must be one of its 2 epochs, not 2"),
        (lambda d: d.update(best_epoch="0"), "best_epoch must be one of its 2 epochs, not '0'"),
        (
            lambda d: d.update(n_nodes=[3, 2]),
            r"n_nodes must be the smallest and the largest number of nodes of a graph, not \[3, 2\]",
        ),
        (
            lambda d: d.update(n_nodes=7),
            "n_nodes must be the smallest and the largest number of nodes of a graph, not 7",
        ),
    ],
)
def test_an_inconsistent_file_is_refused(file, change, message):
    changed(file, change)
    with pytest.raises(DataError, match=message):
        load(file)


def encoded(described, **changes):
    described["encoding"] = json.dumps({**json.loads(described["encoding"]), **changes})


def test_huge_numbers_in_a_header_allocate_no_memory(file, monkeypatch):
    def make(*_):
        raise AssertionError("a network was made of it")

    for name in ("edge_features", "node_features"):
        content = file.read_bytes()
        changed(file, lambda described, name=name: encoded(described, **{name: 10**9}))
        monkeypatch.setattr(LabelNet, "__init__", make)
        tracemalloc.start()
        with pytest.raises(DataError, match=r"it describes at least|it scales 3 node features, but encodes 10{9}"):
            load(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**20
        file.write_bytes(content)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused(fitted, tmp_path, value):
    fitted.save(tmp_path / "model")
    tensors = tensors_of((tmp_path / "model").read_bytes())
    tensors["members.0.net.head.0.bias"][2] = value
    with safe_open(tmp_path / "model", framework="pt") as whole:
        described = json.loads(whole.metadata()["bellnet"])
    described["checksum"] = checksum(described, tensors)
    save_file(tensors, tmp_path / "model", {"bellnet": json.dumps(described)})
    with pytest.raises(DataError, match=r"its tensor 'members\.0\.net\.head\.0\.bias' holds NaN or infinite numbers"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:99", "device is 'cuda:99', which is not available"),
        ("meta", "device is 'meta', on which nothing is computed"),
        ("hpu", "device is 'hpu', which is not available"),
        ("privateuseone:0", "device is 'privateuseone:0', which is not available"),
        ("abacus", "device must be 'auto' or a device of torch such as 'cpu', not 'abacus'"),
        (["cpu"], r"device must be 'auto' or a device of torch such as 'cpu', not \('cpu',\)"),
    ],
)
def test_a_file_for_an_unavailable_device_needs_another_device(file, featured, fitted, device, message):
    changed(file, lambda described: described["options"].update(device=device))
    advice = r"Choose another: load\(path, device='auto'\), or --device auto in the shell\."
    with pytest.raises(DataError, match=rf"load\('.*'\): {message}.*\n{advice}"):
        load(file)
    model = load(file, device="cpu")
    assert model.device == "cpu"
    assert np.array_equal(model.predict(featured), fitted.predict(featured))


def test_an_unavailable_device_is_refused(file, featured):
    with pytest.raises(OptionError, match=r"load\('.*'\): device is 'meta', on which nothing is computed"):
        load(file, device="meta")
    with pytest.raises(
        OptionError, match=r"GraphClassifier\.predict\(graphs\): device is 'cuda:99', which is not available"
    ):
        load(file).set_params(device="cuda:99").predict(featured)


def everything(model):
    """All that there is in a fitted estimator, as one value that can be compared."""
    weights = [(name, value.numpy().tobytes()) for name, value in model.ensemble_.state_dict().items()]
    fitted = (model.classes_.tolist(), str(model.classes_.dtype), model.history_, model.best_epoch_)
    return repr((model.get_params(), fitted, model.encoding_, model.scaling_, weights))


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    graphs, labels = leaves(6)
    path = tmp_path / "model"
    classifier(channels=(1,), hidden=(), max_epochs=1).fit(graphs, labels).save(path)
    content, whole = path.read_bytes(), everything(load(path))
    header = 8 + struct.unpack("<Q", content[:8])[0]
    # Every bit of the tensors, and every seventh before: seven and eight have no common factor.
    bits = [*range(0, 8 * header, 7), *range(8 * header, 8 * len(content))]
    refused = 0
    for bit in bits:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            model = load(path)
        except DataError:
            refused += 1
        else:
            assert everything(model) == whole, bit
    assert refused > 0.99 * len(bits)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("layout", ["padded", "sparse"])
def test_a_model_does_not_depend_on_the_default_type_of_torch(tmp_path, dtype, layout):
    graphs, labels = leaves()
    graphs = [with_features(graph, value=number / 7) for number, graph in enumerate(graphs)]
    model = classifier(layout=layout, dropout=0.3).fit(graphs, labels)
    model.save(tmp_path / "model")
    torch.set_default_dtype(dtype)
    try:
        same = classifier(layout=layout, dropout=0.3).fit(graphs, labels)
        assert everything(same) == everything(load(tmp_path / "model")) == everything(model)
        found = same.predict_proba(graphs)
        same.save(tmp_path / "same")
    finally:
        torch.set_default_dtype(torch.float32)
    assert (tmp_path / "same").read_bytes() == (tmp_path / "model").read_bytes()
    assert np.array_equal(found, model.predict_proba(graphs))


def test_an_interrupted_save_does_not_change_the_old_file(file, monkeypatch):
    before = file.read_bytes()
    graphs, labels = leaves()
    other = classifier(channels=(3,)).fit(graphs, labels)

    def stop(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        other.save(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_full_disk_does_not_change_the_old_file(file, monkeypatch):
    before = file.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="this file cannot be written: No space left on device"):
        load(file).save(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_saving_to_a_missing_directory_raises_an_error(fitted, tmp_path):
    with pytest.raises(DataError) as refusal:
        fitted.save(tmp_path / "nowhere" / "model")
    assert str(refusal.value) == (
        f"save('{tmp_path / 'nowhere' / 'model'}'): this file cannot be written: there is no directory "
        f"'{tmp_path / 'nowhere'}'.\nMake it first, or choose another path."
    )


@pytest.mark.skipif(os.name != "posix", reason="pipes have names there")
def test_a_pipe_is_not_replaced(fitted, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError) as refusal:
        fitted.save(tmp_path / "pipe")
    assert str(refusal.value) == (
        f"save('{tmp_path / 'pipe'}'): this file cannot be written: it is a pipe, not a file.\nChoose another path."
    )
    assert (tmp_path / "pipe").is_fifo()


def test_classes_that_cannot_be_saved_are_refused(tmp_path):
    graphs, labels = leaves()
    model = classifier(max_epochs=1).fit(graphs, labels.astype(np.longdouble))
    with pytest.raises(DataError, match="classes in a file must be numbers of 8 to 64 bits or strings"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": {"vielleicht": 2.0}}, "class_weight has 'vielleicht', which is not a class of y."),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced' or a dict with a weight for every class"),
        ({"channels": (7,)}, "its tensors are not those of the network that it describes."),
        ({"target": "node"}, "its tensors are not those of the network that it describes."),
        ({"pool": "median"}, "pool must be one or several of 'max', 'mean', 'sum', not 'median'."),
        ({"max_epochs": 2.5}, "max_epochs must be 'auto' or an integer from 1 to 2**63 - 1, not 2.5."),
    ],
    ids=str,
)
def test_an_estimator_that_could_not_be_loaded_is_not_saved(fitted, file, options, message):
    before = file.read_bytes()
    model = copy.deepcopy(fitted).set_params(**options)
    for path in (file, file.with_name("new")):
        with pytest.raises(DataError) as refusal:
            model.save(path)
        assert str(refusal.value).startswith(f"save('{path}'): the file could not be loaded: ")
        assert message in str(refusal.value)
        assert str(refusal.value).endswith("\nSet the options as they were in the fit, or fit again.")
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_weights_that_are_nan_are_not_saved(fitted, tmp_path):
    broken = copy.deepcopy(fitted)
    with torch.no_grad():
        broken.ensemble_.members[0].net.head[0].bias[2] = math.nan
    with pytest.raises(
        DataError, match=r"the file could not be loaded: its tensor 'members\.0\.net\.head\.0\.bias' holds NaN"
    ):
        broken.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [{"class_weight": {"nein": 0}}, {"class_weight": None}, {"patience": 3}, {"device": "cuda:99"}], ids=str
)
def test_valid_options_are_saved_and_loaded(fitted, tmp_path, options):
    model = copy.deepcopy(fitted).set_params(**options)
    model.save(tmp_path / "model")
    found = load(tmp_path / "model", device=model.device if model.device == "auto" else "cpu")
    assert {**found.get_params(), "device": model.device} == model.get_params()
