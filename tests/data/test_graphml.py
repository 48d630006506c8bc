"""Folders of GraphML files with a CSV of labels."""

import codecs
import os
import xml.etree.ElementTree
from xml.parsers import expat

import networkx as nx
import pytest

from bellnet.data import as_graph, graphml
from bellnet.errors import DataError

SPACE = "http://graphml.graphdrawing.org/xmlns"
PAIR = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "molecules"
    folder.mkdir()
    for name, n in (("b", 4), ("a", 3), ("c", 5)):
        graph = nx.path_graph(n) if name != "c" else nx.path_graph(n, create_using=nx.DiGraph)
        nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "element")
        nx.set_node_attributes(graph, {node: 0.5 * node for node in graph}, "charge")
        nx.set_edge_attributes(graph, 2, "weight")
        nx.write_graphml(graph, folder / f"{name}.graphml")
    return folder


def test_files_are_sorted_by_name_and_have_their_labels(folder):
    (folder / "labels.csv").write_text("label,note,file\ngood,x,c.graphml\nbad,y,a.graphml\n good ,z,b.graphml\n")
    found = graphml.load(folder)
    assert found.name == "molecules"
    assert found.ids == ("a.graphml", "b.graphml", "c.graphml")
    assert [graph.n for graph in found.graphs] == [3, 4, 5]
    assert found.classes == ("bad", "good")
    assert found.labels.tolist() == [0, 1, 1]
    assert found.targets is None
    assert [graph.directed for graph in found.graphs] == [False, False, True]
    assert repr(found) == "GraphSet('molecules', 3 graphs, 2 classes)"


def test_labels_that_are_numbers_are_targets_too(folder):
    (folder / "labels.csv").write_text("file,label\na.graphml,10\nb.graphml,2\nc.graphml,10\n", encoding="utf-8-sig")
    found = graphml.load(folder)
    assert found.classes == (2, 10)
    assert found.labels.tolist() == [1, 0, 1]
    assert found.targets.tolist() == [[10.0], [2.0], [10.0]]
    (folder / "other.csv").write_text("file,label\na.graphml,1.5\nb.graphml,2\nc.graphml,3\n")
    assert graphml.load(folder, folder / "other.csv").targets.tolist() == [[1.5], [2.0], [3.0]]


def load_with(folder, *labels):
    """The set of a folder of three graphs with these labels."""
    rows = "".join(f"{name}.graphml,{label}\n" for name, label in zip("abc", labels, strict=True))
    (folder / "labels.csv").write_text("file,label\n" + rows, encoding="utf-8")
    return graphml.load(folder)


@pytest.mark.parametrize("label", ["1_0", "１０", "1.5_0", "0x1"])
def test_a_label_that_only_python_reads_as_a_number_is_text(folder, label):
    found = load_with(folder, label, "10", "2")
    assert set(found.classes) == {label, "10", "2"}
    assert found.targets is None


@pytest.mark.parametrize("label", [2**63 - 1, -(2**63)])
def test_the_least_and_largest_int64_labels_of_files_are_read_exactly(folder, label):
    assert label in load_with(folder, 1, f"{label:+}", "0" * 5000 + "2").classes


@pytest.mark.parametrize("label", [2**63, -(2**63) - 1, "9" * 5000], ids=["most", "least", "very long"])
def test_a_label_of_a_file_beyond_int64_raises_an_error(folder, label):
    with pytest.raises(DataError, match=r"labels.csv: expected an integer within int64 for b.graphml, got"):
        load_with(folder, 1, label, 2)


@pytest.mark.parametrize("label", ["nan", "-inf", "Infinity", "1e999", "-NaN", "9" * 5000])
def test_a_label_that_is_not_finite_among_numbers_raises_an_error(folder, label):
    with pytest.raises(
        DataError, match=r"labels.csv: expected a finite number within torch.float32 for b.graphml, got '"
    ):
        load_with(folder, 1.5, label, 2)


@pytest.mark.parametrize("label", ["1e300", "-3.5e38"])
def test_a_label_beyond_float32_raises_an_error(folder, label):
    with pytest.raises(DataError, match=f"within torch.float32 for b.graphml, got '{label}'"):
        load_with(folder, 1, label, 2)
    assert load_with(folder, 1, "3e38", 2).targets.isfinite().all()


@pytest.mark.parametrize("label", ["nan", "inf", "1e300", "9" * 30])
def test_a_label_among_texts_may_look_like_a_number(folder, label):
    found = load_with(folder, "good", label, "bad")
    assert set(found.classes) == {"good", label, "bad"}
    assert found.targets is None


@pytest.mark.parametrize("headings", ["file,label,label", "label,file,file"])
def test_a_heading_that_is_read_must_occur_once(folder, headings):
    (folder / "labels.csv").write_text(headings + "\na.graphml,a.graphml,1\n")
    with pytest.raises(DataError, match=r"labels.csv: expected one heading file and one heading label, got"):
        graphml.load(folder)
    (folder / "labels.csv").write_text("file,x,label,x\n" + "".join(f"{name}.graphml,1,2,3\n" for name in "abc"))
    assert graphml.load(folder).classes == (2,)


def test_without_a_table_there_are_graphs_without_labels(folder):
    found = graphml.load(folder)
    assert found.labels is None
    assert len(found) == 3


def test_attributes_are_read_by_name(folder):
    found = graphml.load(folder, node_attrs="charge", node_labels="element").graphs
    assert found[1].node_features.tolist() == [[0.0], [0.5], [1.0], [1.5]]
    assert found[1].edge_features.tolist() == [[2.0]] * 6
    assert found[0].node_labels.tolist() == found[1].node_labels[:3].tolist()
    assert len(set(found[1].node_labels.tolist())) == 3
    assert found[1] == as_graph(nx.read_graphml(folder / "b.graphml"), node_attrs="charge", node_labels="element")


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes there")
def test_names_of_files_may_not_be_utf_8_but_labels_must_be(tmp_path):
    name = b"caf\xe9.graphml"
    nx.write_graphml(nx.path_graph(2), tmp_path / os.fsdecode(name))
    (tmp_path / "labels.csv").write_bytes(b"file,label\n" + name + b",1\n")
    found = graphml.load(tmp_path)
    assert [os.fsencode(file) for file in found.ids] == [name]
    assert found.classes == (1,)
    (tmp_path / "labels.csv").write_bytes(b"file,label\n" + name + b",gr\xfcn\n")
    with pytest.raises(DataError, match=r"labels.csv cannot be read: 'utf-8' codec can't decode byte"):
        graphml.load(tmp_path)


def document(inside=PAIR, *, before="", keys="", after="", graph='edgedefault="undirected"'):
    """A GraphML file with this in its graph."""
    return f'{before}<graphml xmlns="{SPACE}">{keys}<graph {graph}>{inside}</graph>{after}</graphml>'


def read(folder, text, **options):
    """The graph of a file with this text or these bytes."""
    folder.mkdir(exist_ok=True)
    (folder / "x.graphml").write_bytes(text if isinstance(text, bytes) else text.encode())
    (found,) = graphml.load(folder, **options).graphs
    return found


def declared(name):
    return document(before=f'<?xml version="1.0" encoding="{name}"?>\n<!-- é -->')


ENCODED = {
    "no declaration": document().encode(),
    "utf-8 with a mark": codecs.BOM_UTF8 + declared("UTF-8").encode(),
    "utf-16 with a mark": declared("UTF-16").encode("utf-16"),
    "utf-16 without a mark": declared("UTF-16").encode("utf-16-le"),
    "utf-16 without a mark, large end first": declared("UTF-16").encode("utf-16-be"),
    "latin-1": declared("ISO-8859-1").encode("latin-1"),
    "windows": declared("windows-1252").replace('"', "'", 4).encode("cp1252"),
}


@pytest.mark.parametrize("name", ENCODED)
def test_a_file_is_decoded_as_it_declares(tmp_path, name):
    assert read(tmp_path, ENCODED[name]).edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["klingon", "rot13", "zlib", "x-user-defined"])
def test_an_unknown_text_encoding_raises_an_error(tmp_path, name):
    with pytest.raises(DataError, match=f"x.graphml cannot be decoded: .*{name}.*\nWrite the file as UTF-8."):
        read(tmp_path, declared(name).encode())


@pytest.mark.parametrize("content", [declared("UTF-8").encode("latin-1"), declared("ascii").encode()])
def test_bytes_that_cannot_be_decoded_raise_an_error(tmp_path, content):
    with pytest.raises(DataError, match=r"x.graphml cannot be decoded: .*\nWrite the file as UTF-8."):
        read(tmp_path, content)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
TYPES = {
    "a bomb": f'<!DOCTYPE graphml [<!ENTITY l0 "ha">{LAUGHS}]>',
    "a long entity": f'<!DOCTYPE graphml [<!ENTITY l9 "{"ha" * 50_000}">]>',
    "a parameter": '<!DOCTYPE graphml [<!ENTITY % all SYSTEM "file:///nowhere"> %all;]>',
    "another file": '<!DOCTYPE graphml [<!ENTITY l9 SYSTEM "file:///nowhere">]>',
    "a published type": '<!DOCTYPE graphml SYSTEM "http://graphml.graphdrawing.org/dtds/1.0rc/graphml.dtd">',
    "nothing at all": "<!DOCTYPE graphml>",
}


@pytest.mark.parametrize("lead", ["", '<?xml version="1.0"?>\n<!-- ]]> --><?a <!-- ?>\r\n\t '])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", TYPES)
def test_a_document_type_raises_an_error_before_a_parser_reads_it(tmp_path, monkeypatch, name, encoding, lead):
    def parse(*_, **__):
        raise AssertionError("a parser was asked")

    for module in (expat, xml.etree.ElementTree):
        for function in ("ParserCreate", "XMLParser", "XML", "fromstring", "parse", "ElementTree"):
            if hasattr(module, function):
                monkeypatch.setattr(module, function, parse)
    inside = '<node id="a">&l9;</node>'
    with pytest.raises(DataError, match=r"x\.graphml: a document type"):
        read(tmp_path, document(inside, before=lead + TYPES[name]).encode(encoding))


def test_a_document_type_within_text_is_text(tmp_path):
    inside = PAIR + "<!-- <!DOCTYPE graphml> --><desc><![CDATA[<!DOCTYPE graphml [ ]>]]></desc>"
    assert read(tmp_path, document(inside, before="<!-- <!DOCTYPE x> -->")).n == 2


NODE_KEY = '<key id="k" for="node" attr.name="charge" attr.type="double"/>'
UNREAD = {
    "an edge to a node that is not there": (document(PAIR + '<edge source="a" target="z"/>'), "joins 'a' with 'z'"),
    "an edge from a node that is not there": (document(PAIR + '<edge source="z" target="a"/>'), "joins 'z' with 'a'"),
    "an edge without an end": (document(PAIR + '<edge source="a"/>'), "joins 'a' with None"),
    "a node without a name": (document(PAIR + "<node/>"), "node without id"),
    "a node twice": (document(PAIR + '<node id="a"/>'), "'a' occurs twice"),
    "a key twice": (document(keys=NODE_KEY * 2), "'k' occurs twice"),
    "a key for something unknown": (
        document(keys=NODE_KEY.replace('for="node"', 'for="vertex"')),
        "for of the <key> 'k' must be 'all', 'graphml', 'graph', 'node', 'edge', 'hyperedge', 'port' or 'endpoint', "
        "got 'vertex'.\nWrite one of them.",
    ),
    "a key for nothing": (document(keys=NODE_KEY.replace('for="node"', 'for=""')), "or 'endpoint', got ''."),
    "a key for Nodes": (document(keys=NODE_KEY.replace('for="node"', 'for="Node"')), "or 'endpoint', got 'Node'."),
    "a value twice": (
        document('<node id="a"><data key="k">1</data><data key="k">2</data></node>', keys=NODE_KEY),
        "'k' occurs twice",
    ),
    "two defaults of a key": (
        document(keys=NODE_KEY.replace("/>", "><default>1</default><default>2</default></key>")),
        "the key 'k' has 2 defaults",
    ),
    "two keys of one name for nodes": (
        document(keys=NODE_KEY + NODE_KEY.replace('"k"', '"l"')),
        "the attr.name 'charge' for nodes occurs twice",
    ),
    "a key for all and one for edges of one name": (
        document(keys=NODE_KEY.replace("node", "all") + NODE_KEY.replace('"k" for="node"', '"l" for="edge"')),
        "the attr.name 'charge' for edges occurs twice",
    ),
    "a key for unsaid and one for graphs of one name": (
        document(keys=NODE_KEY.replace(' for="node"', "") + NODE_KEY.replace('"k" for="node"', '"l" for="graph"')),
        "the attr.name 'charge' for graphs occurs twice",
    ),
    "an element within a value": (
        document('<node id="a"><data key="k"><x>5</x></data></node>', keys=NODE_KEY),
        "<x> within <data> is not read",
    ),
    "an element beside a value": (
        document('<node id="a"/><edge source="a" target="a"><data key="k">5<x/></data></edge>', keys=NODE_KEY),
        "<x> within <data> is not read",
    ),
    "an element within a default": (
        document(keys=NODE_KEY.replace("/>", "><default><x/></default></key>")),
        "<x> within <default> is not read",
    ),
    "an edge twice": (
        document(PAIR.replace("<edge", '<edge id="e"') + '<edge id="e" source="b" target="b"/>'),
        "the edge 'e' occurs twice",
    ),
    "text within the graph": (document("5" + PAIR), "the text '5' within <graph> is not read"),
    "text after a node": (document('<node id="a"/> five '), "the text 'five' within <graph> is not read"),
    "text within a node": (document('<node id="a">5</node>'), "the text '5' within <node> is not read"),
    "text beside the graph": (document(after="x" * 99), f"the text '{'x' * 57}...' within <graphml> is not read"),
    "a second graph": (document(after='<graph edgedefault="directed"/>'), "expected one graph, got 2"),
    "a graph within a node": (
        document('<node id="a" yfiles.foldertype="group"><graph edgedefault="directed"/></node>'),
        "<graph> within <node> is not read",
    ),
    "a graph within an edge": (
        document('<node id="a"/><edge source="a" target="a"><graph edgedefault="directed"/></edge>'),
        "<graph> within <edge> is not read",
    ),
    "a hyperedge": (document(PAIR + '<hyperedge><endpoint node="a"/></hyperedge>'), "<hyperedge> within <graph>"),
    "a port": (document('<node id="a"><port name="p"/></node>'), "<port> within <node> is not read"),
    "an edge to a port": (document(PAIR.replace("target=", 'targetport="p" target=')), "targetport of an <edge>"),
    "a locator": (
        document('<node id="a"><locator xmlns:x="http://www.w3.org/1999/xlink" x:href="file:///nowhere"/></node>'),
        "<locator> within <node> is not read",
    ),
    "an unknown part": (document('<vertex id="a"/>'), "<vertex> within <graph> is not read"),
    "a part of something else": (document('<node xmlns="urn:x" id="a"/>'), "<{urn:x}node> within <graph> is not read"),
    "no direction": (document(graph=""), "edgedefault of the <graph> must be 'directed' or 'undirected', got None"),
    "an unknown direction": (document(graph='edgedefault="Directed"'), "got 'Directed'"),
    "an unknown direction of an edge": (
        document(PAIR.replace("target=", 'directed="yes" target=')),
        "directed of an <edge> must be 'true' or 'false', got 'yes'",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_content_that_a_graph_cannot_represent_raises_an_error(tmp_path, name):
    text, words = UNREAD[name]
    with pytest.raises(DataError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'x.graphml'}: ")
    assert words in str(caught.value)
    without_space = text.replace(f' xmlns="{SPACE}"', "")
    with pytest.raises(DataError) as caught:
        read(tmp_path, without_space)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["all", "graphml", "graph", "node", "edge", "hyperedge", "port", "endpoint"])
def test_a_key_may_be_for_any_element_of_graphml(tmp_path, kind):
    found = read(tmp_path, document(keys=NODE_KEY.replace('for="node"', f'for="{kind}"')))
    assert (found.n, found.n_edges) == (2, 2)


def test_nodes_may_follow_their_edges(tmp_path):
    found = read(tmp_path, document('<edge source="a" target="b"/><node id="b"/><node id="a"/>'))
    assert found.edge_index.tolist() == [[0, 1], [1, 0]]
    assert found.n == 2


def test_a_missing_value_is_the_default_of_its_key(tmp_path):
    keys = NODE_KEY.replace("/>", "><default>0.5</default></key>") + (
        '<key id="w" for="edge" attr.name="weight" attr.type="int"><default>3</default></key>'
    )
    inside = PAIR.replace('"a"/>', '"a"><data key="k">2</data></node>', 1)
    found = read(tmp_path, document(inside, keys=keys), node_attrs="charge")
    assert found.node_features.tolist() == [[2.0], [0.5]]
    assert found.edge_features.tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize("attribute", [' for="all"', ""])
def test_a_default_of_a_key_for_all_elements_applies_to_nodes_and_edges(tmp_path, attribute):
    keys = f'<key id="k"{attribute} attr.name="w" attr.type="int"><default>3</default></key>'
    inside = PAIR.replace('"a"/>', '"a"><data key="k">2</data></node>', 1)
    for text in (document(inside, keys=keys), document(inside, keys=keys).replace(f' xmlns="{SPACE}"', "")):
        found = read(tmp_path, text, node_attrs="w", edge_attrs="w")
        assert found.node_features.tolist() == [[2.0], [3.0]]
        assert found.edge_features.tolist() == [[3.0], [3.0]]


def test_a_key_for_nodes_and_one_for_edges_may_have_one_name(tmp_path):
    keys = "".join(
        f'<key id="{value}" for="{kind}" attr.name="w" attr.type="int"><default>{value}</default></key>'
        for value, kind in enumerate(("node", "edge", "graph"))
    )
    found = read(tmp_path, document(keys=keys), node_attrs="w", edge_attrs="w")
    assert found.node_features.tolist() == [[0.0], [0.0]]
    assert found.edge_features.tolist() == [[1.0], [1.0]]


def test_a_drawing_of_yed_may_have_elements(tmp_path):
    keys = '<key id="d" for="node" yfiles.type="nodegraphics"/>'
    drawing = '<y:ShapeNode xmlns:y="http://www.yworks.com/xml/graphml"><y:NodeLabel>C</y:NodeLabel></y:ShapeNode>'
    found = read(tmp_path, document(f'<node id="a"><data key="d">{drawing}</data></node>', keys=keys))
    assert found.node_labels is not None


def test_a_drawing_that_is_nested_too_deeply_raises_an_error(tmp_path):
    keys = '<key id="d" for="all" yfiles.type="nodegraphics"><default>C</default></key>'
    drawing = "<y>" * 10_000 + "</y>" * 10_000
    with pytest.raises(DataError, match=r"x.graphml: its elements are nested too deeply to be read\.\nRemove them"):
        read(tmp_path, document(f'<node id="a"><data key="d">{drawing}</data></node>', keys=keys))


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_feature_beyond_float64_raises_an_error(tmp_path, sign):
    key = '<key id="k" for="node" attr.name="w" attr.type="long"/>'
    inside = f'<node id="a"><data key="k">{sign}{"9" * 400}</data></node>'
    with pytest.raises(DataError, match=r"x.graphml: as_graph.* attribute 'w' of node 'a' does not fit float64"):
        read(tmp_path, document(inside, keys=key), node_attrs="w")


def test_an_empty_default_raises_an_error(tmp_path):
    for kind in ("double", "boolean"):
        keys = NODE_KEY.replace("double", kind).replace("/>", "><default/></key>")
        with pytest.raises(DataError, match="cannot be read as GraphML"):
            read(tmp_path, document(keys=keys))


@pytest.mark.parametrize("label", [2**63, -(2**63) - 1])
def test_a_label_beyond_int64_raises_an_error(tmp_path, label):
    key = '<key id="k" for="node" attr.name="label" attr.type="long"/>'
    inside = '<node id="a"><data key="k">{}</data></node>'
    with pytest.raises(DataError, match=f"the label 'label' of node 'a' must fit int64, but it is {label}"):
        read(tmp_path, document(inside.format(label), keys=key))
    near = label - 1 if label > 0 else label + 1
    assert read(tmp_path, document(inside.format(near), keys=key)).node_labels.tolist() == [near]
