"""Settings of Sphinx: everything is built from this clone, and the pages need no network."""

import re
import sys
from pathlib import Path

from docutils import nodes

import khot

sys.path += [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]

_SIGN = re.compile(r"``.*?``|(?P<sign>\*(?=\w+_shape)|\|(?=\S))")  # outside of literals

project = "khot"
author = "The khot developers"
project_copyright = "2026, " + author
version = release = khot.__version__

extensions = [
    "command_line",
    "figures",
    "mathml",
    "myst_parser",
    "numpydoc",
    "made_tables",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["figures", "gallery"]
nitpicky = True
nitpick_ignore_regex = [("py:obj", ".*")]  # single backticks of docstrings: a link where there is one to make
show_warning_types = True
suppress_warnings = ["config.cache"]  # sphinx_gallery_conf holds a function

html_theme = "pydata_sphinx_theme"
html_title = "khot"
html_static_path = ["_static"]
html_css_files = ["khot.css"]
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_sidebars = {"changelog": []}
html_theme_options = {
    "logo": {"text": "khot", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "tango",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "smartquotes"]
myst_heading_anchors = 3

default_role = "py:obj"
templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings give types and shapes
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "backreferences_dir": "auto_gallery/uses",
    "doc_module": ("khot",),
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_", "__str__"),
    "min_reported_time": 0,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
}


def _skip_what_others_define(app, kind, name, member, skip, options):
    """Leave out members inherited from torch or scikit-learn, and functions that are only the default of a field."""
    function = getattr(member, "fget", member)
    if getattr(function, "__name__", name) != name:
        return True
    module = getattr(function, "__module__", None) or "khot"
    return None if module.startswith("khot") else True


def _escape(app, kind, name, member, options, lines):
    """Show ``(*sample_shape, n)`` and ``|A|`` as they are: reStructuredText means something by these signs."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = _SIGN.sub(lambda found: f"\\{found[0]}" if found["sign"] else found[0], line)


def _strip_code(app, doctree):
    """Leave out the empty line at the end of examples, which doctest needs."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block.children = [nodes.Text(block.rawsource)]


def setup(app):
    """Connect the functions above."""
    app.connect("doctree-read", _strip_code)
    app.connect("autodoc-skip-member", _skip_what_others_define)
    app.connect("autodoc-process-docstring", _escape)
