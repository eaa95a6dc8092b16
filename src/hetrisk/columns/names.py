"""What the name of a column says about whole numbers in it: the same rule wherever rows live.

Under some names (region, site, subject, batch, postcode) whole numbers mostly stand for things
that have names of their own. As environments or as a side column such numbers have no order.
"""

from __future__ import annotations

import re

_LIKELY_IDENTIFIER = re.compile(
    r"^(id|pid|idcode|idnum|nr|no|seqn?|person|individual|subject)$|[a-z]{3}id$"
)
_ENDS_IN_ID = ("paid", "valid", "acid", "uid", "solid", "brid", "grid", "lipid", "oid", "covid")
_CODE_NAME = re.compile(r"(^|[\W_])(zip|zipcode|postcode|postal|code)([\W_]|$)", re.I)
# Whole numbers under such a name mostly stand for words, in an order that means nothing.
_LIKELY_CODE = re.compile(
    r"(^|[\W_])(mode|type|kind|class|category|cat|group|grp|cluster|species|brand|make|model|"
    r"region|state|country|county|district|ward|site|sector|industry|ind|sic|naics|occupation|"
    r"occ|race|ethnicity|religion|marital|status|method|treatment|arm|cohort|channel|segment|"
    r"dept|department|shop|store|batch)([\W_0-9]|$)",
    re.I,
)


def says_code(name: str) -> bool:
    """Whether a column of that name holds codes: postcodes, say."""
    return bool(_CODE_NAME.search(name))


def names_kinds(name: str) -> bool:
    """Whether numbers in a column of that name mostly stand for words: kinds, or places."""
    return bool(_LIKELY_CODE.search(name))


def names_things(name: str) -> bool:
    """Whether numbers in a column of that name are names: of persons, places or kinds."""
    likely = _LIKELY_IDENTIFIER.search(name.lower()) and not name.lower().endswith(_ENDS_IN_ID)
    return bool(likely) or names_kinds(name) or says_code(name)
