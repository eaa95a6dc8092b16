"""How `make site` builds the documentation. Nothing here, nor in the pages, needs a network."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "_ext")]

import hetrisk  # noqa: E402

project = "hetrisk"
author = "The hetrisk developers"
project_copyright = author
version = release = hetrisk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "public_names",
    "pages",
]
exclude_patterns = [
    "examples/*",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.json",
    "README.md",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# The reproduction goes from its sections straight to tables; a page may be reached by links alone.
suppress_warnings = ["myst.header", "toc.not_included"]

# Types that are documented elsewhere are not linked: their pages would have to be fetched.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!hetrisk\.).*"),
    (
        "py:.*",
        r"hetrisk\.(core|columns|blocks|report|estimators|baselines|tables|modelfile|reproduce|monitoring)\..*",
    ),
]
default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
templates_path = ["_templates"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"


sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/example_",
    "ignore_pattern": r"__init__\.py",
    "reset_modules": ("figures.reset",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,
    "plot_gallery": "True",
    "run_stale_examples": True,  # what an example prints follows from the code, not from its text
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "hetrisk"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "changelog": []}
