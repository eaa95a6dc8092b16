"""What users may rely on: names, parameters and fitted attributes, kept in a list by hand.

A name that goes, or a parameter that is renamed, fails here; HETRISK_UPDATE_NAMES=1 writes the list
anew, and whoever does that writes a line in the changelog.
"""

import inspect
import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

LIST = Path(__file__).parent / "public_names.txt"
MODULES = ("hetrisk", "hetrisk.baselines", "hetrisk.blocks", "hetrisk.datasets")
MODULES += ("hetrisk.metrics", "hetrisk.modelfile", "hetrisk.plotting", "hetrisk.tables")


def names():
    """One line a public name: its parameters, for a class its public methods as well."""
    for module in map(import_module, MODULES):
        for name in sorted(module.__all__):
            found = getattr(module, name)
            if isinstance(found, ModuleType):
                yield f"{module.__name__}.{name}: module"
                continue
            yield f"{module.__name__}.{name}{parameters(found)}"
            if inspect.isclass(found):
                for method in sorted(own_methods(found)):
                    yield f"  {method}{parameters(getattr(found, method))}"


def parameters(found) -> str:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return ""
    listed = [
        p.name if p.kind != p.KEYWORD_ONLY else f"{p.name}=" for p in signature.parameters.values()
    ]
    return f"({', '.join(name for name in listed if name != 'self')})"


def own_methods(found) -> set[str]:
    """Public methods that the class or a base class within the package defines."""
    return {
        name
        for base in found.__mro__
        if base.__module__.startswith("hetrisk")
        for name, value in vars(base).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, classmethod))
    }


def test_public_names_are_those_on_the_list():
    text = "\n".join(names()) + "\n"
    if os.environ.get("HETRISK_UPDATE_NAMES"):
        LIST.write_text(text)
    assert text.splitlines() == LIST.read_text().splitlines()
