"""The tables of the benchmarks, from `benchmarks/results/*.json`, which `make bench` writes."""

import re
from typing import Any

from benchmarks.tables.cells import against, claims, result, short, table

_PROBLEM = re.compile(r"(\d+) x (\d+), k = (\d+)(?:, t = ([\d.]+))?")
_AGREES, _TIME = ": post-hoc accuracy, %", ": ms a review"
_THREADS = re.compile(r"threads = (\d+): times faster")


def speed() -> str:
    """How many times faster `successive_softmax` is than the textbook loop, forward and backward."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for what, claim in claims("speed").items():
        if threads := _THREADS.search(what):
            found.setdefault(_problem(what), {})[int(threads[1])] = claim
    most = max(max(own) for own in found.values())
    rows = [
        [name, *(_times(claim) for _, claim in sorted(own.items())), short(own[most]["ms"]), str(own[most]["at_least"])]
        for name, own in found.items()
    ]
    heads = [f"times faster, {n} thread{'s' * (n > 1)}" for n in sorted({n for own in found.values() for n in own})]
    return table(["rows × items", *heads, f"ms, {most} threads", "goal"], rows)


def speed_in_short() -> str:
    """The least and the largest figure of `speed` with one thread, in a sentence."""
    found = {what: c for what, c in claims("speed").items() if (t := _THREADS.search(what)) and t[1] == "1"}
    least, largest = (pick(found, key=lambda what: found[what]["measured"]) for pick in (min, max))
    few, many = (f"{short(found[what]['measured'])} times as fast at {_problem(what)}" for what in (least, largest))
    return (
        "Compared with the textbook loop in PyTorch (float32, forward and backward, one thread), `successive_softmax` "
        f"is\n{few}, and {many}."
    )


def softmaxes() -> str:
    """What a forward pass costs in units of one `torch.softmax` of the same rows."""
    rows = [
        [_problem(what), short(claim["measured"]), short(claim["ms"]), f"≤ {claim['at_most']}"]
        for what, claim in claims("speed").items()
        if what.endswith("forward in softmaxes")
    ]
    return table(["rows × items", "calls of torch.softmax", "ms", "goal"], rows)


def operators() -> str:
    """What the other relaxations cost in units of the textbook loop, forward and backward."""
    found: dict[str, dict[str, str]] = {}
    for what, claim in claims("operators").items():
        if what.endswith("textbook loops"):
            name, problem = what.split(", ", 1)
            found.setdefault(_problem(problem), {})[name] = short(claim["measured"])
    names = list(dict.fromkeys(name for own in found.values() for name in own))
    return table(["rows × items", *names], ([problem, *own.values()] for problem, own in found.items()))


def sampling() -> str:
    """How many times faster `sample_subset` and its noise are than the textbook and `torch.distributions.Gumbel`."""
    found: dict[str, list[str]] = {}
    for what, claim in claims("sampling").items():
        threads = re.search(r"threads = (\d+)", what)[1]
        found.setdefault(f"{_problem(what)}, threads = {threads}", []).append(_times(claim))
    rows = [[problem, *times] for problem, times in found.items()]
    return table(["rows × items", "sample_subset, times faster", "noise alone, times faster"], rows)


def first_call() -> str:
    """Processor seconds of the first calls, with nothing compiled and with everything on disk."""
    rows = [
        [what.replace(", processor seconds", ""), short(claim["measured"]), _bound(claim)]
        for what, claim in claims("first_call").items()
    ]
    return table(["", "processor seconds", "goal"], rows)


def others() -> str:
    """The figures that stand alone: memory, growth with k, the exact law, accuracy."""
    rows = []
    for name in ("memory", "speed", "operators", "accuracy"):
        for what, claim in claims(name).items():
            if not (_THREADS.search(what) or what.endswith(("softmaxes", "textbook loops"))):
                rows.append([what, short(claim["measured"]), _bound(claim)])
    return table(["what", "measured", "goal"], rows)


def peers() -> str:
    """Milliseconds of a forward and backward pass with 16 rows, of khot and of what one might take instead."""
    found = peer_times()
    columns = sorted({column for own in found.values() for column in own})
    ours, rows = found["khot.successive_softmax"], []
    for name, own in found.items():
        faster = {c for c in own if own[c] < ours[c] and not name.startswith("khot.")}
        cells = {c: short(own[c]) + (" (faster than khot)" if c in faster else "") for c in own}
        rows.append([name, *(cells.get(c, "") for c in columns)])
    return table(["ms", *(f"k = {k}, n = {n:,}" for k, n in columns)], rows)


def peer_times() -> dict[str, dict[tuple[int, int], float]]:
    """Milliseconds of each library by k and n."""
    found: dict[str, dict[tuple[int, int], float]] = {}
    for what, claim in claims("peers").items():
        name, n, k = re.fullmatch(r"(.+), n = (\d+), k = (\d+): ms", what).groups()
        found.setdefault(name, {})[int(k), int(n)] = claim["measured"]
    return found


def embedding_peers() -> str:
    """Two-dimensional maps of khot, openTSNE and umap-learn, measured on the test rows."""
    rows, found = [], claims("embeddings")
    for dataset, title in (("mnist", "MNIST"), ("20newsgroups", "20 Newsgroups")):
        peers = {}
        for name in ("openTSNE", "umap-learn"):
            trust, error = found[f"{dataset}, {name}: trustworthiness"], found[f"{dataset}, {name}: 1-NN error, %"]
            peers[name] = trust["measured"], error["measured"], trust["minutes"]
        ours = result(f"embed-{dataset}-subset-ours-d2")
        best_trust, best_error = max(t for t, _, _ in peers.values()), min(e for _, e, _ in peers.values())
        trust = against(ours["trustworthiness"], best_trust, 3, who="the best")
        error = against(ours["knn_error"], best_error, 2, most=False, who="the best")
        minutes = ours["minutes"] / ours["settings"]["splits"]
        rows.append([title, "khot.embed.SubsetSNE, tuned", trust, error, f"{minutes:.0f}"])
        rows += [[title, name, f"{t:.3f}", f"{e:.2f}", f"{m:.1f}"] for name, (t, e, m) in peers.items()]
    return table(["", "", "trustworthiness", "1-NN error, %", "minutes"], rows)


def explanation_peers() -> str:
    """How faithful and how quick explanations of film reviews by ten words are, of khot and of other libraries."""
    found = claims("explanations")
    best = max(claim["measured"] for what, claim in found.items() if what.endswith(_AGREES))
    rows = []
    for name in (what.removesuffix(_TIME) for what in found if what.endswith(_TIME)):
        figures = [f"{name}{_TIME}", *(f"{name}: times as long as {own}" for own in ("khot", "khot, for_class"))]
        figures += [f"{name}: minutes to fit", f"{name}: reviews after which khot, for_class has paid"]
        numbers = [short(found[what]["measured"]) if what in found else "" for what in figures]
        rows.append([name, _agreement(found.get(name + _AGREES), best), *numbers])
    heads = ["", "same class, % (95%)", "ms a review", "times khot", "times khot, for_class", "minutes to fit"]
    return table([*heads, "reviews after which for_class is faster"], rows)


def _agreement(claim: dict[str, Any] | None, best: float) -> str:
    if claim is None:
        return ""
    low, high = claim["interval"]
    return f"{against(claim['measured'], best, 1, who='the best')}, {low:.1f} to {high:.1f}"


def embedding_epochs() -> str:
    """Seconds of an epoch of the paper's embedding of MNIST."""
    rows = [[what, short(claim["measured"])] for what, claim in claims("embedding_epochs").items()]
    return table(["what", "measured"], rows)


def _problem(what: str) -> str:
    batch, n, k, temperature = _PROBLEM.match(what).groups()
    return f"{int(batch):,} × {int(n):,}, k = {k}" + (f", t = {float(temperature):g}" if temperature else "")


def _times(claim: dict[str, Any]) -> str:
    failed = claim["measured"] < claim.get("at_least", 0)
    return short(claim["measured"]) + (" (below its goal)" if failed else "")


def _bound(claim: dict[str, Any]) -> str:
    if "at_least" in claim:
        return f"≥ {claim['at_least']}" + (" (missed)" if claim["measured"] < claim["at_least"] else "")
    if "at_most" in claim:
        return f"≤ {claim['at_most']}" + (" (missed)" if claim["measured"] > claim["at_most"] else "")
    return ""
