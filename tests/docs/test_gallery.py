"""Every example of the gallery runs."""

import matplotlib
import pytest

from tests.docs.reference import DOCS

EXAMPLES = sorted((DOCS / "gallery").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_example_runs_and_draws_a_figure(example, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context({"backend": "agg", "figure.constrained_layout.use": True}):
        namespace = {"__name__": "__main__"}
        exec(compile(example.read_text(encoding="utf-8"), example.name, "exec"), namespace)
        drawn = [value for value in namespace.values() if isinstance(value, Figure)]
        plt.close("all")
    assert drawn
    assert list(tmp_path.iterdir()) == []
