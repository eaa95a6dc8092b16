"""The built site in a real browser: offline, quiet, narrow and dark; and no link in it is broken.

`make site` builds it. Without it, or without a Chromium, these tests are skipped.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser import Browser, executable

SITE = Path(__file__).resolve().parent.parent / "out" / "site"
built = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the site is not built: make site"
)
seen = pytest.mark.skipif(executable() is None, reason="no Chromium on this machine")
HEADINGS = ("start", "how-to/index", "gallery/index", "concepts/index", "reference/index")
SAMPLE = (
    "index",
    *HEADINGS,
    "evidence",
    "real",
    "how-to/next-year",
    "concepts/backtest",
    "cli",
    "reference/generated/hetrisk.BacktestRegressor",
    "gallery/example_01_computer_prices",
)
EXAMPLES = 10


class Links(HTMLParser):
    """Addresses and anchors of a page."""

    def __init__(self):
        super().__init__()
        self.leads, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.leads += [given[key] for key in ("href", "src") if given.get(key)]


def read(path):
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


def broken_links(site):
    """Local links of a site that lead nowhere, and pictures or scripts it would have to fetch."""
    pages = {
        path: read(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }
    broken = []
    for path, links in pages.items():
        for link in links.leads:
            where = urlsplit(link)
            if where.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            missing = not target.exists()
            if where.fragment and target in pages:
                missing |= unquote(where.fragment) not in pages[target].anchors
            if missing:
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#there"></a><img src="c.png">'
        '<a href="https://x.org/none"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert broken_links(tmp_path) == ["a.html: b.html#there", "a.html: c.png"]


@built
def test_no_link_of_the_site_is_broken():
    assert not broken_links(SITE)


@built
def test_the_gallery_holds_executed_examples_with_figures():
    pages = sorted((SITE / "gallery").glob("example_*.html"))
    assert len(pages) >= EXAMPLES
    for page in pages:
        assert re.search(r"sphx_glr_example_\w+_001", page.read_text()), page.name


@built
def test_every_public_name_has_a_page():
    import hetrisk

    for name in set(hetrisk.__all__) - {"baselines", "datasets", "metrics", "plotting", "tables"}:
        assert (SITE / "reference" / "generated" / f"hetrisk.{name}.html").exists(), name


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@built
@seen
@pytest.mark.browser
class TestInABrowser:
    @pytest.mark.parametrize("name", SAMPLE)
    def test_a_page_is_quiet_offline_and_fits_a_telephone(self, browser, name):
        tab = browser.open(SITE / f"{name}.html", width=400, height=800)
        assert not [url for url in tab.requests() if not url.startswith(("file:", "blob:"))]
        said = [text for text in tab.complaints() if "[PST]: " not in text]
        assert said == []  # beside the notes of the theme
        assert tab.run("document.documentElement.scrollWidth") <= 400
        tab.close()

    @pytest.mark.parametrize("name", SAMPLE)
    def test_no_text_is_cut_off_on_a_telephone(self, browser, name):
        tab = browser.open(SITE / f"{name}.html", width=400, height=800)
        beyond = tab.run(
            """(() => {
              const page = document.querySelector(".bd-article").getBoundingClientRect();
              return [...document.querySelectorAll(".bd-article *")]
                .filter((e) => !e.closest("table, pre"))  // these scroll
                .filter((e) => e.getBoundingClientRect().right > page.right + 2)
                .map((e) => e.textContent.slice(0, 40));
            })()"""
        )
        assert beyond == []
        tab.close()

    def test_it_follows_the_dark(self, browser):
        shades = []
        for dark in (False, True):
            tab = browser.open(SITE / "index.html", dark=dark)
            shades.append(tab.run("getComputedStyle(document.body).backgroundColor"))
            tab.close()
        light, dark = (sum(map(int, re.findall(r"\d+", shade)[:3])) for shade in shades)
        assert light > 600
        assert dark < 150

    def test_the_search_finds_a_page_without_a_network(self, browser):
        tab = browser.open(SITE / "search.html")
        tab.go(f"{(SITE / 'search.html').as_uri()}?q=reach")
        found = tab.run(
            """new Promise((found) => {
              const started = Date.now();
              const look = () => {
                const links = [...document.querySelectorAll("#search-results li a")];
                const done = links.length || Date.now() - started > 20000;
                done ? found(links.map((a) => a.href).join(" ")) : setTimeout(look, 100);
              };
              look();
            })"""
        )
        assert "concepts/reach.html" in found
        tab.close()
