"""The API reference documents exactly the public names."""

from tests.docs.reference import documented_names, public_names


def test_every_public_name_is_documented():
    documented = {id(value) for value in documented_names().values()}
    assert [name for name, value in public_names().items() if id(value) not in documented] == []


def test_names_are_documented_as_they_are_imported():
    public = public_names()
    components = ("bellnet.plan.",)  # of a Plan
    assert [name for name in documented_names() if name not in public and not name.startswith(components)] == []


def test_undocumented_name_is_found(tmp_path):
    (tmp_path / "page.md").write_text(".. autoclass:: bellnet.Padded\n\n.. autofunction:: bellnet.plan\n")
    documented = documented_names(tmp_path)
    assert list(documented) == ["bellnet.Padded", "bellnet.plan"]
    assert "bellnet.Sparse" in public_names().keys() - documented.keys()
