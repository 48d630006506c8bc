"""Sphinx configuration: builds the pages offline from Markdown, docstrings and the examples of the gallery."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole

import bellnet

sys.path.insert(0, str(Path(__file__).parent))

project = "bellnet"
author = "bellnet authors"
copyright = author
version = release = bellnet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/*.rst"]
smartquotes = False  # specs are shown in straight quotes

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

# Theme: all files are local, nothing is loaded from another site.
html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "bellnet"
html_static_path = ["_static"]
html_css_files = ["bellnet.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#00629a"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# The reference
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
python_maximum_signature_line_length = 88
default_role = "name"

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 10**9,
    "write_computation_times": False,
    "capture_repr": (),  # printed text, not the value of the last line
    "image_scrapers": ("gallery_pictures.scraper",),
    "reset_modules": ("gallery_pictures.reset",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}


def _name(role, rawtext, text, lineno, inliner, options=None, content=()):
    """The role of `single backticks`: a link for a name of the reference, otherwise plain code."""
    if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", text):
        return PyXRefRole()("py:obj", rawtext, text, lineno, inliner, options or {}, content)
    return [nodes.literal(rawtext, text)], []


def _plain(app, what, name, obj, options, lines):
    """Escapes all markup in docstrings except `code` and *emphasis*."""
    marks = re.compile(r"(`[^`]*`)(?=\w)|(`[^`]*`|(?<![\w(])\*[^\s*][^*]*[^\s*(]\*(?!\w))|[*|\\]|(?<=\w)_(?!\w)")

    def shown(found):
        if found[1]:  # a plural, `Graph`s: reStructuredText needs an escape after the name
            return found[1] + "\\ "
        return found[2] or "\\" + found[0]

    text = marks.sub(shown, "\n".join(lines))
    for index, new in enumerate(text.split("\n")):
        if not lines[index].lstrip().startswith((">>>", "...")):
            lines[index] = new


def _skip(app, what, name, obj, skip, options):
    """Skips the methods that scikit-learn adds to every estimator for metadata routing."""
    return skip or bool(re.fullmatch(r"set_\w+_request", name))


def _more(app, name, source):
    """Appends pages that are missing from the first page, under the heading More."""
    if name == "index":
        in_toctree = set(re.findall(r"^[\w/]+$", source[0], re.MULTILINE)) | {"index"}
        if others := sorted({path.stem for path in Path(__file__).parent.glob("*.md")} - in_toctree):
            entries = "\n".join(others)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: More\n\n{entries}\n```\n"


def _explorer(app, exception):
    """Writes the explorer as an additional page."""
    from explorer.build_page import build_page

    if exception is None and app.builder.format == "html":
        page = build_page().replace("@@spec@@", "n n -&gt; n n")
        (Path(app.outdir) / "explore.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_role("name", _name)
    app.connect("autodoc-process-docstring", _plain, priority=400)
    app.connect("autodoc-skip-member", _skip)
    app.connect("source-read", _more)
    app.connect("build-finished", _explorer)
