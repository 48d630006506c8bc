"""The reference has the public names and no others."""

from tests.docs.reference import listed_names, public_names


def test_every_public_name_is_in_the_reference():
    listed = {id(value) for value in listed_names().values()}
    assert [name for name, value in public_names().items() if id(value) not in listed] == []


def test_reference_lists_names_as_they_are_imported():
    public = public_names()
    inside = ("bellnet.plan.",)  # what a Plan is made of
    assert [name for name in listed_names() if name not in public and not name.startswith(inside)] == []


def test_unlisted_name_is_found(tmp_path):
    (tmp_path / "page.md").write_text(".. autoclass:: bellnet.Padded\n\n.. autofunction:: bellnet.plan\n")
    listed = listed_names(tmp_path)
    assert list(listed) == ["bellnet.Padded", "bellnet.plan"]
    assert "bellnet.Sparse" in public_names().keys() - listed.keys()
