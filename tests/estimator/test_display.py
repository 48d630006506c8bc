"""The estimators in notebooks, and the learning curve."""

import re
import sys
from html import unescape

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from bellnet.errors import MissingExtraError
from bellnet.estimator import load
from tests.estimator.small import classifier, leaves, regressor


@pytest.fixture(scope="module")
def fitted():
    return classifier(max_epochs=4, patience=4).fit(*leaves())


def words_of(page):
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]*>", " ", page)))


def test_a_notebook_shows_options_and_fitted_attributes(fitted):
    page = fitted._repr_html_()
    words = words_of(page)
    for option, value in fitted.get_params().items():
        assert option in words
        if isinstance(value, bool | int | float):
            assert f"{option} {value}" in words
    assert "Fitted" in words
    for name in ("classes_", "history_", "best_epoch_", "layout_", "ensemble_"):
        assert f" {name} " in words
    assert not re.search(r"""(?:src|href)=["']http""", page)  # nothing is loaded from elsewhere


def test_a_notebook_shows_that_an_estimator_is_not_fitted():
    words = words_of(classifier()._repr_html_())
    assert "Not fitted" in words
    assert "history_" not in words


def test_the_display_option_of_scikit_learn_is_respected(fitted):
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
    assert repr(fitted).startswith("GraphClassifier(")


@pytest.mark.parametrize(("make", "score"), [(classifier, "accuracy"), (regressor, "coefficient of determination")])
def test_the_learning_curve_is_the_history(make, score):
    graphs, labels = leaves()
    y = labels if make is classifier else np.arange(len(labels))
    model = make(max_epochs=3, patience=3).fit(graphs, y)
    figure = model.plot_history()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["loss", score]
    for axes, name in zip(figure.axes, ("loss", model._score_name), strict=True):
        training, validation, best = axes.lines
        for line, key in ((training, name), (validation, f"validation_{name}")):
            assert list(line.get_xdata()) == [0, 1, 2]
            assert list(line.get_ydata()) == [record[key] for record in model.history_]
        assert list(best.get_xdata()) == [model.best_epoch_] * 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        *("training", "validation set", "best epoch"),
    ]
    assert figure._repr_png_()[0].startswith(b"\x89PNG")


def test_without_a_validation_set_there_is_one_curve():
    figure = classifier(validation_fraction=0).fit(*leaves()).plot_history()
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]


def test_a_model_from_a_file_has_its_learning_curve(fitted, tmp_path):
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors").plot_history()
    assert list(again.axes[0].lines[0].get_ydata()) == [record["loss"] for record in fitted.history_]


def test_a_history_without_scores_shows_the_loss():
    old = classifier(max_epochs=1).fit(*leaves())
    old.history_ = [{"epoch": 0, "loss": 0.5, "validation_loss": None, "accuracy": None}]
    assert [axes.get_title(loc="left") for axes in old.plot_history().axes] == ["loss"]


def test_there_is_no_learning_curve_before_a_fit():
    with pytest.raises(NotFittedError):
        classifier().plot_history()


def test_plot_history_without_matplotlib_names_the_extra(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as missing:
        fitted.plot_history()
    assert str(missing.value) == (
        "GraphClassifier.plot_history() needs matplotlib, which is not installed.\n"
        "Install it: pip install 'bellnet[draw]'"
    )
