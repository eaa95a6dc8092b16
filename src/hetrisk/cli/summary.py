"""A fitted model on the terminal: the summary the page is made from, in text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from hetrisk.cli.terminal import grid, words
from hetrisk.core.result import UNSEARCHED
from hetrisk.report.labels import count_of, listed, number, percent, probability
from hetrisk.report.page import (
    caution,
    leave_sentence,
    leave_unit,
    risk_format,
    times,
    verdict_word,
)
from hetrisk.report.summary import Action, Decision, Summary, by_importance

if TYPE_CHECKING:
    from rich.console import Console

MOST_COLUMNS = 30
LONGEST_REASON = 2000
MOST_ENVIRONMENTS = 20
ACTION_STYLE = {
    Action.THIS: "bold green",
    Action.PLAIN: "bold cyan",
    Action.UNKNOWN: "bold yellow",
}
DECISION_STYLE = {
    Decision.KEPT: "green",
    Decision.DROPPED: "red",
    Decision.UNCERTAIN: "yellow",
}


def show(s: Summary, screen: Console) -> None:
    """Print a summary for a person: what to do first, then what it rests on."""
    for _, _, sentence in () if s.origin is None else s.origin.leaks:
        screen.print(Text(f"LEAK: {words(sentence, 400)}", style="bold red"))
    _show_recommendation(s, screen)
    _show_table(s, screen)
    parts = (_columns, _sources, _environments, _leave_one_out, _quality)
    for part in parts:
        drawn = part(s)
        if drawn is not None:
            screen.print()
            screen.print(drawn)
        if part is _leave_one_out and s.leave_one_out:
            screen.print(leave_sentence(s))
    if caution(s):
        screen.print(Text(f"Note: {words(caution(s), 400)}", style="yellow"))


def _show_recommendation(s: Summary, screen: Console) -> None:
    action = s.recommendation.action
    screen.print(Text(words(s.recommendation.sentence, 600), style=ACTION_STYLE[action]))
    for point in s.recommendation.points:
        line = Text(f"  {point.question}: ", style="bold")
        screen.print(line + Text(words(point.answer, 600), style="not bold"))
    screen.print(Text(f"\nVerdict: {verdict_word(s)}. {words(s.reason, LONGEST_REASON)}"))


def _show_table(s: Summary, screen: Console) -> None:
    if s.origin is None:
        return
    screen.print(
        f"{words(s.origin.source, 60)}: {count_of(s.origin.n_rows, 'row')}, "
        f"{count_of(s.origin.n_columns, 'column')}. "
        f"{s.task.capitalize()}: {words(s.origin.reason, 200)}."
    )


def _columns(s: Summary) -> Any:
    features = by_importance(s.features)
    if s.verdict == UNSEARCHED:
        names = words(listed([f.label for f in features], MOST_COLUMNS), LONGEST_REASON)
        return Text(f"Columns used; too few rows to say what each is worth: {names}")
    rows: list[tuple[object, ...]] = [
        (
            f.label,
            Text(_decision(f), style=DECISION_STYLE[f.decision]),
            percent(f.margin, True, 1),
            percent(f.price, True, 1),
            times(s.n_resamples, f.stability),
            probability(f.p_value),
        )
        for f in features[:MOST_COLUMNS]
    ]
    hidden = len(features) - len(rows)
    if hidden:
        rows.append((f"… and {hidden:,} more: see --json", "", "", "", "", ""))
    heads = [
        ("column", "left"),
        ("decision", "left"),
        ("margin", "right"),
        ("price", "right"),
        ("left out in", "right"),
        ("p-value", "right"),
    ]
    title = (
        "Columns, the most important first. Margin decides: more error at the reach asked for, "
        "were the decision the other way. Price: more error without it if nothing shifts. Left "
        "out in: of the resamples of the rows"
    )
    return grid(title, heads, rows)


def _decision(f: Any) -> str:
    word: str = f.decision.value
    if f.decision is Decision.UNCERTAIN:
        word += ", kept" if f.used else ", left out"
    return word + (" (assumed)" if f.assumed else "")


def _sources(s: Summary) -> Any:
    if not s.sources:
        return None
    rows = [
        (
            source.name,
            source.kind,
            source.n_environments,
            number(source.score, 2),
            probability(source.p_value),
            source.against or "–",
            "yes" if source.used else "no",
        )
        for source in s.sources[:MOST_ENVIRONMENTS]
    ]
    heads = [
        ("source", "left"),
        ("kind", "left"),
        ("groups", "right"),
        ("score", "right"),
        ("p-value", "right"),
        ("speaks against", "left"),
        ("used", "left"),
    ]
    return grid("Where environments were looked for", heads, rows)


def _environments(s: Summary) -> Any:
    if len(s.environments) < 2:
        return None
    risk = risk_format(s)
    rows: list[tuple[object, ...]] = [
        (
            e.label,
            percent(e.share, False, 1),
            risk(e.risk),
            risk(e.risk_erm),
            Text(words("; ".join(e.differences[:2]) or "nothing by much", 300)),
        )
        for e in s.environments[:MOST_ENVIRONMENTS]
    ]
    hidden = len(s.environments) - len(rows)
    if hidden:
        rows.append((f"… and {hidden:,} more: see --json", "", "", "", ""))
    heads = [
        ("environment", "left"),
        ("rows", "right"),
        ("this model", "right"),
        ("plain ERM" if s.provenance.linear else "plain linear", "right"),
        ("what differs there", "left"),
    ]
    return grid(f"Environments, with the {s.risk_name} on the rows learned from", heads, rows)


def _leave_one_out(s: Summary) -> Any:
    if not s.leave_one_out:
        return None
    rows = [
        (e.label, number(e.error), number(e.error_erm), number(e.error_anchor))
        for e in s.leave_one_out[:MOST_ENVIRONMENTS]
    ]
    heads = [
        ("left out", "left"),
        ("this model", "right"),
        ("plain ERM", "right"),
        ("anchor regression", "right"),
    ]
    return grid(f"Each environment left out in turn: {leave_unit(s)} there", heads, rows)


def _quality(s: Summary) -> Any:
    if s.quality is None:
        return None
    rows = [(m.name, number(m.this), number(m.plain)) for m in s.quality.metrics]
    heads = [("figure", "left"), ("this model", "right"), ("plain ERM", "right")]
    title = (
        f"Out of fold, if nothing shifts: {count_of(s.quality.n_rows, 'row')} predicted by models "
        f"fitted without them, in {s.quality.n_folds} folds"
    )
    return grid(title, heads, rows)
