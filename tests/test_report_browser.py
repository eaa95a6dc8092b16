"""The page in a real browser: quiet, offline, sortable, readable, and deaf to hostile names."""

from dataclasses import replace

import numpy as np
import pytest

from browser import Browser, executable
from hetrisk.report import repr_html, summarize
from hetrisk.report.page import render_summary
from report_models import HOSTILE, fitted

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(executable() is None, reason="no Chromium on this machine"),
]

# Contrast of every piece of text against what is painted behind it, and its size in pixels;
# colours are read back from a canvas, which turns any notation into red, green and blue.
READABLE = """
(() => {
  const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.push(rgba(getComputedStyle(e).backgroundColor));
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const light = (c) => {
    const straight = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = c.map((v) => straight(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.closest("script, title, .unseen") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const inPicture = element instanceof SVGElement;
    const back = behind(element);
    const front = over(rgba(inPicture ? style.fill : style.color), back);
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    found.push({text: text.slice(0, 40), contrast, size: parseFloat(style.fontSize)});
  }
  return found;
})()
"""
# Text that sticks out of the screen and cannot be scrolled to.
OUTSIDE = """
Array.from(document.querySelectorAll("p, h1, h2, h3, li, dd, dt, figcaption, svg text, .strips td"))
  .filter((e) => e.checkVisibility() && !e.closest(".scroll, pre, .unseen"))
  .filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.left < -1 || box.right > innerWidth + 1);
  })
  .map((e) => e.textContent.slice(0, 60))
"""


def column(table, cell):
    return f"Array.from(document.querySelectorAll('{table} tbody tr')).map(r => {cell})"


@pytest.fixture(scope="module")
def browser():
    with Browser() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Write each kind of page once; the first has histograms."""
    folder = tmp_path_factory.mktemp("pages")
    plain = summarize(fitted(["sun", "rain", "wind", "fog", "hail", "snow", "ice"], K=3))
    rng = np.random.default_rng(0)
    spread = replace(
        plain.spreads[0],
        edges=np.linspace(-2, 2, 25),
        shares=rng.dirichlet(np.ones(24), size=3),
    )
    summaries = {
        "plain": replace(plain, spreads=(spread, *plain.spreads[1:])),
        "hostile": summarize(fitted(HOSTILE, K=3, classes=HOSTILE[:4])),
        "wide": summarize(fitted(d=200, K=5)),
        "homogeneous": summarize(fitted(K=1, verdict="homogeneous")),
        "many": summarize(fitted(K=39, d=4)),
    }
    for name, summary in summaries.items():
        title = HOSTILE[0] if name == "hostile" else "Weather"
        page = render_summary(summary, title)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in summaries}


@pytest.fixture
def tab(browser, request):
    """Open the page a test asks for; close it after."""
    opened = []

    def open_page(path, **options):
        opened.append(browser.open(path, **options))
        return opened[-1]

    yield open_page
    for one in opened:
        one.close()


@pytest.mark.parametrize("name", ["plain", "hostile", "wide", "homogeneous", "many"])
def test_the_page_opens_without_a_complaint_or_a_request(tab, pages, name):
    page = tab(pages[name])
    assert page.run("document.readyState") == "complete"
    assert page.complaints() == []
    assert page.requests() == []


def test_the_checks_themselves_notice(tab, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        "<script>console.log('spoke')</script><img src='missing.png'>"
        "<p style='color:#aaa'>pale</p><p style='width: 2000px'>wide</p>"
    )
    page = tab(path)
    assert any("spoke" in complaint for complaint in page.complaints())
    assert page.requests()
    assert [t["text"] for t in page.run(READABLE) if t["contrast"] < 4.5] == ["pale"]
    assert page.run(OUTSIDE) == ["wide"]


def test_columns_sort_both_ways_and_say_so(tab, pages):
    page = tab(pages["plain"])
    header = "document.querySelectorAll('#features th')[2]"
    cost = column("#features", "Number(r.cells[2].dataset.value)")
    page.run(f"{header}.querySelector('button').click()")
    assert page.run(cost) == sorted(page.run(cost), reverse=True)
    assert page.run(f"{header}.getAttribute('aria-sort')") == "descending"
    page.run(f"{header}.querySelector('button').click()")
    assert page.run(cost) == sorted(page.run(cost))
    assert page.run(f"{header}.getAttribute('aria-sort')") == "ascending"
    assert page.run("document.querySelectorAll('#features [aria-sort]').length") == 1
    page.run("document.querySelector('#features th button').click()")
    names = page.run(column("#features", "r.cells[0].textContent"))
    assert names == sorted(names)


def test_columns_sort_from_the_keyboard(tab, pages):
    page = tab(pages["plain"])
    page.run("document.querySelectorAll('#features th')[4].querySelector('button').focus()")
    page.key("Enter", 13, "\r")
    price = page.run(column("#features", "Number(r.cells[4].dataset.value)"))
    assert price == sorted(price, reverse=True)


def test_a_class_can_be_chosen(tab, pages):
    page = tab(pages["hostile"])
    shown = """Array.from(document.querySelectorAll('.chooser .panel'))
        .filter(p => p.checkVisibility()).map(p => p.dataset.name)"""
    (first,) = page.run(shown)
    page.run("document.querySelector('.chooser select').focus()")
    page.key("End", 35)
    (last,) = page.run(shown)
    assert first != last
    assert page.run("document.querySelector('.chooser select').labels[0].textContent") == "Class"


def test_contents_lead_to_every_section(tab, pages):
    page = tab(pages["plain"])
    links = page.run("Array.from(document.querySelectorAll('.contents a')).map(a => a.hash)")
    assert len(links) >= 7
    assert page.run(f"{links!r}.every(h => document.querySelector(h) !== null)")


def test_figures_can_be_saved_as_files_that_stand_alone(tab, pages):
    page = tab(pages["plain"])
    page.run(
        "window.saved = []; URL.createObjectURL = (b) => { saved.push(b); return '#'; };"
        "URL.revokeObjectURL = () => {};"
        "HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };"
        "document.querySelectorAll('.save').forEach(b => b.click())"
    )
    names = page.run("saved.filter(s => typeof s === 'string')")
    assert names == ["reach-curve.svg"]
    text = page.run("saved[0].text()")
    assert text.startswith("<svg")
    assert "This model" in text
    assert "var(" not in text
    problem = "new DOMParser().parseFromString(t, 'image/svg+xml').querySelector('parsererror')"
    assert page.run(f"saved[0].text().then(t => {problem} === null)")
    assert page.complaints() == []


def test_no_column_of_a_table_is_cut_off_on_a_phone(tab, pages):
    page = tab(pages["plain"], width=400)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    cut = """Array.from(document.querySelectorAll('.stack td, .stack tbody th'))
        .filter(c => c.checkVisibility() && c.getBoundingClientRect().right > innerWidth + 1)
        .map(c => c.textContent)"""
    assert page.run(cut) == []
    heading = "getComputedStyle(document.querySelector('#features td.n'), '::before').content"
    assert page.run(heading) == '"Margin"'


def test_long_tables_are_folded_and_unfold(tab, pages):
    page = tab(pages["wide"])
    visible = column("#features", "r.checkVisibility()")
    assert sum(page.run(visible)) == 25
    page.run("document.querySelector('.unfold').click()")
    assert sum(page.run(visible)) == 200
    assert page.run("document.querySelector('.unfold').getAttribute('aria-expanded')") == "true"


def test_everything_can_be_read_without_scripts(tab, pages):
    page = tab(pages["wide"], scripts=False)
    snapshot = page.call("DOMSnapshot.captureSnapshot", computedStyles=[])
    strings = snapshot["strings"]
    shown = {strings[i] for i in snapshot["documents"][0]["layout"]["text"] if i >= 0}
    assert {f"x{j}" for j in range(200)} <= shown
    assert not {"Show all 200 rows", "Feature "} & shown
    assert page.complaints() == []


def test_hostile_names_do_not_execute(tab, pages):
    page = tab(pages["hostile"])
    assert page.run("document.title") == "<script>document.title='pwned'</script>"
    assert page.run("document.scripts.length") == 1
    assert page.run("document.querySelectorAll('img, [onerror], [onload]').length") == 0
    names = page.run(column("#features", "r.cells[0].textContent"))
    assert HOSTILE[0] in names
    assert HOSTILE[3] in names
    page.run("document.querySelectorAll('th button').forEach(b => b.click())")
    page.run(
        "document.querySelectorAll('select').forEach(s => Array.from(s.options).forEach((o, i) => {"
        " s.selectedIndex = i; s.dispatchEvent(new Event('change')); }))"
    )
    assert page.run("document.title") == "<script>document.title='pwned'</script>"
    assert page.complaints() == []


def test_hostile_names_do_not_execute_in_a_notebook(tab, tmp_path):
    path = tmp_path / "cell.html"
    cell = repr_html(fitted(HOSTILE))
    path.write_text(f"<meta charset=utf-8><title>safe</title>{cell}", encoding="utf-8")
    assert tab(path).run("document.title") == "safe"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1100, 400])
@pytest.mark.parametrize("name", ["plain", "hostile", "homogeneous"])
def test_the_page_is_readable(tab, pages, name, width, dark):
    page = tab(pages[name], width=width, dark=dark)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    texts = page.run(READABLE)
    assert len(texts) > 100
    assert [t for t in texts if t["contrast"] < 4.5] == []
    assert [t for t in texts if t["size"] < 11] == []
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(OUTSIDE) == []


def test_dark_mode_is_dark(tab, pages):
    lightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert max(tab(pages["plain"], dark=True).run(lightness)) < 50
    assert min(tab(pages["plain"]).run(lightness)) > 230


def test_the_page_prints_in_full(tab, pages, tmp_path):
    page = tab(pages["wide"], dark=True)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert sum(page.run(column("#features", "r.checkVisibility()"))) == 200
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("document.querySelector('.unfold').checkVisibility()") is False
    head = "getComputedStyle(document.querySelector('#features thead')).display"
    assert page.run(head) == "table-header-group"  # repeated on every sheet
    page.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
