"""The documentation site: ``make docs`` builds it in ``build/site``."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, copytree

from sphinx.application import Sphinx

import saddleback

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"

project = "Saddleback"
author = "The Saddleback developers"
copyright = author
release = version = saddleback.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]

nitpicky = True
# properties, to which numpydoc makes links
nitpick_ignore = [("py:obj", name) for name in ("mse_path_", "reads", "selected_")]
exclude_patterns = ["reproduction/*.md"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the order of the gallery is a function, which cannot be stored
highlight_language = "none"  # blocks without a language are formulas or commands

# Pages are also read on the code host, hence its slugs for headings and no directives in them.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
# MathJax is part of the site, so that formulas need no network; only the files that are used are copied
MATHJAX = Path(find_spec("sphinx-mathjax-offline").submodule_search_locations[0], "static", "mathjax")
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}, "chtml": {"displayAlign": "left"}}

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have the types
autodoc_default_options = {"inherited-members": False}
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/{section}"
        for section in ("regression", "classification", "signals", "matrices", "optimisation", "trust", "large")
    ],
    "abort_on_example_error": True,
    "capture_repr": (),  # examples print what they show
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # tables that need a network
    "min_reported_time": 60,
    "plot_gallery": True,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "Saddleback"
html_favicon = html_logo = "_static/saddleback.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "Saddleback"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}


def _links_within_the_site(app: Sphinx, name: str, source: list[str]) -> None:
    """Turn links to files outside of ``docs/``, which are right on the code host, into links to their pages here."""
    up = "../" * name.count("/")
    for file, page in {
        "CONTRIBUTING": "development/contributing",
        "CHANGELOG": "development/changelog",
        "README": "index",
    }.items():
        source[0] = source[0].replace(f"]({up}../{file}.md", f"]({up}{page}.md")
    source[0] = source[0].replace(f"]({up}../examples/README.rst", f"]({up}gallery/index.rst")
    source[0] = re.sub(rf"(?<=\]\({re.escape(up)})\.\./examples/([\w/]+)\.py", r"gallery/\1.rst", source[0])


def _formulas_as_they_are(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep |x| and coef_ in docstrings from being read as markup; what is in backticks or examples is left alone."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            plain_and_quoted = re.split(r"(``.*?``|`.*?`)", line)
            plain_and_quoted[::2] = [
                re.sub(r"\\?\||(?<=\w)_(?!\w)", lambda m: "\\" + m[0][-1], s) for s in plain_and_quoted[::2]
            ]
            lines[at] = "".join(plain_and_quoted)


def _copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        for part in ("tex-chtml.js", "output/chtml/fonts"):
            target = app.outdir / "_static" / "mathjax" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            source = MATHJAX / part
            copytree(source, target, dirs_exist_ok=True) if source.is_dir() else copy(source, target)


def setup(app: Sphinx) -> None:
    """Register the above with Sphinx."""
    app.connect("source-read", _links_within_the_site)
    app.connect("autodoc-process-docstring", _formulas_as_they_are, priority=900)  # after numpydoc
    app.connect("build-finished", _copy_mathjax)
