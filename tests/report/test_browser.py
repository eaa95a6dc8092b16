"""The page in a browser: nothing asked for, nothing said, nothing cut off at any width."""

import pytest

from browser import Browser, executable
from hetrisk.report import write_report

from .made import summary

pytestmark = pytest.mark.skipif(executable() is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def browser():
    with Browser() as running:
        yield running


@pytest.mark.parametrize("width", [400, 1100])
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_fits_its_window_and_asks_for_nothing(browser, tmp_path, width, dark):
    page = tmp_path / "p.html"
    write_report(
        summary(n_columns=300, name="a_column_with_one_long_word_for_a_name_and_no_blank_{}"), page
    )
    tab = browser.open(page, width=width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.complaints() == []
    assert tab.requests() == []
    tab.close()


def test_tables_sort_and_pictures_are_saved_without_a_complaint(browser, tmp_path):
    write_report(summary(), tmp_path / "p.html")
    tab = browser.open(tmp_path / "p.html")
    first = "document.querySelector('#candidates tbody th').textContent"
    before = tab.run(first)
    tab.run("document.querySelector('#candidates th button').click()")
    tab.run("document.querySelector('#candidates th button').click()")
    assert before == "constant"
    assert tab.run(first) == "trend" or tab.run(first) == "trees"
    tab.run("document.querySelector('.save').click()")
    assert tab.complaints() == []
    tab.close()
