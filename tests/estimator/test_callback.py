"""The callback of a fit."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tests.estimator.small import classifier, leaves, regressor


@pytest.mark.parametrize("make", [classifier, regressor])
def test_callback_gets_the_record_and_the_weights_of_every_epoch(make):
    graphs, labels = leaves()
    seen = []
    model = make(max_epochs=4, dropout=0.3)
    model.fit(graphs, labels, callback=lambda learning, record: seen.append((record, learning.predict(graphs[:9]))))
    assert [record for record, _ in seen] == model.history_
    assert np.array_equal(seen[model.best_epoch_][1], model.predict(graphs[:9]))


def test_callback_does_not_change_the_fit():
    graphs, labels = leaves()
    model = classifier(max_epochs=3, dropout=0.3)
    alone = model.fit(graphs, labels).predict_proba(graphs)

    def look(learning, record):
        learning.predict_proba(graphs)
        record.clear()

    assert np.array_equal(model.fit(graphs, labels, callback=look).predict_proba(graphs), alone)
    assert model.history_[0].keys() >= {"epoch", "loss", "validation_loss"}


def test_an_error_in_the_callback_ends_the_fit():
    graphs, labels = leaves()
    model = classifier()

    def stop(learning, record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(graphs, labels, callback=stop)
    with pytest.raises(NotFittedError):
        model.predict(graphs)
