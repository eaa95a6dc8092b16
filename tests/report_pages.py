"""A report as a reader's machine sees it: every tag closed in order, every attribute kept."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """A strict reading of the page: every tag closed in order, every attribute kept."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.words.append((self.open[-1] if self.open else "", data))

    @property
    def text(self):
        shown = [word for tag, word in self.words if tag not in ("style", "script")]
        return " ".join(" ".join(shown).split())

    def attributes(self, name):
        return [attrs[name] for _, attrs in self.tags if name in attrs]


def start_of(page):
    """Everything above the contents."""
    text = Page(page).text.replace("\u00a0", " ")
    return text[: text.index("The search’s own words")].partition("How the error grows")[0]
