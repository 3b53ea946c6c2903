"""Tables that code makes: the directive `made-table` calls a function that returns Markdown."""

from importlib import import_module
from typing import ClassVar

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from khot._relaxations import RELAXATIONS, find


class MadeTable(SphinxDirective):
    """Show what ``package.module.function`` returns; `machine` names a file of results, whose machine stands below."""

    required_arguments = 1
    option_spec: ClassVar = {"machine": directives.unchanged}

    def run(self):
        module, name = self.arguments[0].rsplit(".", 1)
        text = getattr(import_module(module), name)()
        if "machine" in self.options:
            text += f"\n\n*{import_module('benchmarks.tables').machine(self.options['machine'])}*\n"
        return self.parse_text_to_nodes(text)


def promises():
    """What each relaxation promises."""
    lines = [
        "| relaxation | entries at most 1 | keeps the order of the keys | k vectors in order |",
        "|---|---|---|---|",
    ]
    for name in RELAXATIONS:
        relaxation = find(name)
        traits, ordered = relaxation.traits, "ordered" in (relaxation.__kwdefaults__ or {})
        order = _from(traits.keeps_order_from)
        cells = [f"{{py:func}}`~khot.{name}`", "yes" if traits.bounded else "no", order, "yes" if ordered else "no"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _from(temperature):
    if temperature == float("inf"):
        return "not promised"
    return f"from temperature {temperature:g} up" if temperature else "always"


def setup(app):
    """Register the directive."""
    app.add_directive("made-table", MadeTable)
    return {"parallel_read_safe": True}
