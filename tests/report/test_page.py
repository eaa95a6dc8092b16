"""The page: one file, short, escaped, drawn from the same description as the displays."""

from html.parser import HTMLParser

import pytest

from hetrisk.report import render, write_report
from hetrisk.report.figures import backtest_picture, reach_picture
from hetrisk.report.stored import record

from .made import answer, summary

HOSTILE = '</script><img src=x onerror="alert(1)"> {} \u202e$x_$ {{7*7}}'


class Words(HTMLParser):
    """Words a person reads, and whether tags are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style", "title"} & set(self.open):
            self.words += data.split()


def read(page):
    parser = Words()
    parser.feed(page)
    assert parser.open == []
    return parser


CASES = {
    "time": {},
    "sites": {"timed": False},
    "labels": {"unit": "log loss", "quality": "classes"},
    "plain": {"chosen": "plain"},
    "untested": {"chosen": "plain", "n": 0, "environments": 0},
    "wide": {"n_columns": 300, "name": "a column with a rather long name of its own {}"},
    "one": {"n_columns": 1},
    "hostile": {"name": HOSTILE, "quality": "leak"},
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_whole_short_and_harmless(case):
    page = render(summary(**CASES[case]))
    parser = read(page)
    assert len(parser.words) < 1200 or case == "hostile"
    assert not [a for _, a in parser.tags if any(n.startswith("on") or n == "style" for n in a)]
    assert not [tag for tag, _ in parser.tags if tag == "img"]
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_picture_comes_before_everything_but_the_answer():
    page = render(summary())
    order = [page.index(mark) for mark in ('"headline"', "<figure", "h-candidates", "h-columns")]
    assert order == sorted(order)


def test_the_decision_stands_on_the_page_and_in_the_record():
    made = summary()
    page, values = render(made), record(made)
    assert made.decision.headline in page
    assert values["decision"]["headline"] == made.decision.headline
    assert values["decision"]["action"] == "use"
    assert len(values["ranking"]) == 4
    assert values["forecast"]["by_horizon"][0]["label"] == "1 ahead"


def test_a_model_is_drawn_once():
    ranking, backtest, forecast, _ = answer(chosen="plain")
    picture = backtest_picture(ranking, backtest, forecast)
    assert [s.role for s in picture.series] == ["constant"] * 2 + ["chosen"] * 2
    assert picture.series[-1].lower == tuple(h.chosen.lower for h in forecast.by_horizon)


def test_sites_go_from_best_to_worst_and_periods_in_their_order():
    for timed in (True, False):
        ranking, backtest, forecast, _ = answer(timed=timed)
        backtest = backtest if timed else backtest[::-1]
        picture = backtest_picture(ranking, backtest, forecast)
        errors = picture.series[-2].y
        assert list(errors) == sorted(errors)


def test_nothing_is_drawn_of_what_was_not_measured():
    ranking, backtest, forecast, curve = answer(chosen="plain", n=0)
    assert backtest_picture(ranking, backtest, forecast) is None
    assert reach_picture(ranking, curve, "RMSE", 1.0) is None


def test_a_page_is_written_at_once(tmp_path):
    write_report(summary(), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE")
