"""Explanations of film reviews by 10 words, compared with LIME, SHAP and integrated gradients: fidelity and speed.

The black box and khot's explainers are trained first if the user's cache does not hold them yet, which takes two hours
of a core; the reviews come from khot.datasets. The other methods choose the ten words with the largest weights for the
class that the model predicts, with their default settings. All explain one review at a time, and their time includes
the calls of the model; khot's also includes the model's output for the review and for the ten words. khot is timed with
all reviews in one call as well. Its times are medians of passes before and after each other method, since the speed
of a machine may drift.
"""

import statistics
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.common import write
from khot.experiments import explain
from khot.experiments.reviews import PADDING
from khot.experiments.runs import runs
from khot.explain import SubsetExplainer, fidelity

REVIEWS = 200
OURS = {"khot": "subset", "khot, for_class": "subset-for-class"}
Scores = Callable[[np.ndarray, int], np.ndarray]
"""Tokens (items,) and the model's class to a weight for each."""

Choose = Callable[[np.ndarray], np.ndarray]
"""Reviews (n, items) to flags of the words that are chosen."""


def of_texts(given: explain.Problem) -> Callable[[list[str]], np.ndarray]:
    """The model as a function of texts, whose words are the numbers of tokens."""

    def predict(texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), given.plan.length), np.int64)
        for row, text in zip(rows, texts, strict=True):
            numbers = [int(word) for word in text.split()]
            row[len(row) - len(numbers) :] = numbers
        return given.predict_proba(rows)

    return predict


def text_of(tokens: np.ndarray) -> str:
    return " ".join(str(number) for number in tokens[tokens != PADDING])


def at_words(tokens: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of the words at their places in the row."""
    placed = np.zeros(len(tokens))
    placed[tokens != PADDING] = weights
    return placed


def lime(given: explain.Problem) -> Scores:
    from lime.lime_text import LimeTextExplainer

    explainer = LimeTextExplainer(split_expression=" ", bow=False, mask_string=str(PADDING), random_state=0)
    predict = of_texts(given)

    def scores(tokens: np.ndarray, label: int) -> np.ndarray:
        count = int((tokens != PADDING).sum())
        found = explainer.explain_instance(text_of(tokens), predict, labels=(label,), num_features=count)
        weights = dict(found.as_map()[label])
        return at_words(tokens, np.array([weights.get(place, 0.0) for place in range(count)]))

    return scores


def partition_shap(given: explain.Problem) -> Scores:
    """What shap.Explainer takes for texts."""
    import shap

    masker = shap.maskers.Text(r" ", mask_token=str(PADDING), collapse_mask_token=False)
    predict = of_texts(given)
    explainer = shap.explainers.Partition(lambda texts: predict([str(text) for text in texts]), masker)

    def scores(tokens: np.ndarray, label: int) -> np.ndarray:
        found = explainer([text_of(tokens)], silent=True)
        return at_words(tokens, np.asarray(found.values[0])[:, label])

    return scores


def permutation_shap(given: explain.Problem) -> Scores:
    """With ten permutations, as shap takes by default, each there and back."""
    import shap

    def scores(tokens: np.ndarray, label: int) -> np.ndarray:
        present = np.flatnonzero(tokens != PADDING)

        def predict(masks: np.ndarray) -> np.ndarray:
            rows = np.full((len(masks), len(tokens)), PADDING)
            rows[:, present] = np.where(masks > 0, tokens[present], PADDING)
            return given.predict_proba(rows)[:, label]

        explainer = shap.explainers.Permutation(predict, np.zeros((1, len(present))), seed=0)
        evaluations = 10 * (2 * len(present) + 1)
        found = explainer(np.ones((1, len(present))), max_evals=evaluations, silent=True)
        return at_words(tokens, found.values[0])

    return scores


def integrated_gradients(given: explain.Problem) -> Scores:
    from captum.attr import LayerIntegratedGradients

    method = LayerIntegratedGradients(given.black_box.eval(), given.black_box[0])

    def scores(tokens: np.ndarray, label: int) -> np.ndarray:
        row = torch.from_numpy(tokens[None])
        return method.attribute(row, torch.full_like(row, PADDING), target=label).sum(-1)[0].detach().numpy()

    return scores


PEERS = {
    "LIME": ("lime", lime),
    "SHAP (permutation)": ("shap", permutation_shap),
    "SHAP (partition)": ("shap", partition_shap),
    "integrated gradients": ("captum", integrated_gradients),
}


def timed(name: str, tokens: np.ndarray, choose: Choose) -> tuple[np.ndarray, float]:
    """Chosen items of each review (n, items), and the mean seconds for a review, after one to warm up."""
    choose(tokens[:1])
    began = time.perf_counter()
    chosen = np.concatenate([choose(row[None]) for row in tqdm(tokens, desc=name, disable=None)])
    return chosen, (time.perf_counter() - began) / len(tokens)


def by_khot(explainer: SubsetExplainer) -> Choose:
    return lambda rows: explainer.explain(rows, eligible=explain.words(rows)).chosen


def by_weights(given: explain.Problem, scores: Scores) -> Choose:
    def choose(row: np.ndarray) -> np.ndarray:
        label = int(given.predict_proba(row).argmax())
        eligible = (row != PADDING) & explain.words(row)
        return fidelity.largest_items(scores(row[0], label)[None], eligible, given.plan.k)

    return choose


class Passes:
    """Seconds for a review that khot's explainers take, one at a time and all in one call, in each pass."""

    def __init__(self, explainers: dict[str, SubsetExplainer], tokens: np.ndarray) -> None:
        self.choices = {name: by_khot(explainer) for name, explainer in explainers.items()}
        self.tokens = tokens
        self.seconds: dict[str, list[float]] = {name: [] for own in explainers for name in (own, at_once(own))}

    def another(self) -> None:
        for name, choose in self.choices.items():
            self.seconds[name].append(timed(name, self.tokens, choose)[1])
            began = time.perf_counter()
            choose(self.tokens)
            self.seconds[at_once(name)].append((time.perf_counter() - began) / len(self.tokens))


def at_once(name: str) -> str:
    return f"{name}, all reviews in one call"


def main() -> None:
    with runs(None, "full", "reproduce-explain") as folder:
        given = explain.problem("imdb-word", "full", folder)
        explainers = {
            name: given.explainer(method, "search", 0, folder / f"imdb-word-{method}-0")
            for name, method in OURS.items()
        }
    rows = np.random.RandomState(0).choice(len(given.test), REVIEWS, replace=False)
    tokens = given.test[rows]
    passes, peers = Passes(explainers, tokens), {}
    for name, (package, make) in PEERS.items():
        try:
            scores = make(given)
        except ImportError as error:
            print(f"  {name} is left out: {error}")
            continue
        passes.another()
        peers[f"{name}, {package} {version(package)}"] = timed(name, tokens, by_weights(given, scores))
    passes.another()

    def faithful(name: str, chosen: np.ndarray) -> dict:
        masker = explainers["khot"].masker_
        share = fidelity.post_hoc_accuracy_of(given.predict_proba, masker, tokens, chosen, 5000)
        interval = [100 * share.low, 100 * share.high]
        return {"what": f"{name}: post-hoc accuracy, %", "measured": 100 * share.value, "interval": interval}

    ours = {name: statistics.median(seconds) for name, seconds in passes.seconds.items()}
    claims = []
    for name, explainer in explainers.items():
        claims.append(faithful(name, passes.choices[name](tokens)))
        claims.append({"what": f"{name}: minutes to fit", "measured": explainer.seconds_ / 60})
    for name, seconds in passes.seconds.items():
        claims.append(
            {"what": f"{name}: ms a review", "measured": 1e3 * ours[name], "passes": [1e3 * one for one in seconds]}
        )
    for name, (chosen, seconds) in peers.items():
        claims.append(faithful(name, chosen))
        claims.append({"what": f"{name}: ms a review", "measured": 1e3 * seconds})
        bound = {} if name.startswith("integrated") else {"at_least": 100}
        for own, quick in ours.items():
            claims.append({"what": f"{name}: times as long as {own}", "measured": seconds / quick, **bound})
        for own, explainer in explainers.items():
            claims.append(
                {"what": f"{name}: reviews after which {own} has paid", "measured": paid(explainer, seconds, ours[own])}
            )
    write("explanations", claims)


def paid(explainer: SubsetExplainer, theirs: float, ours: float) -> float:
    """Number of reviews after which the time of the training has been saved."""
    return explainer.seconds_ / (theirs - ours) if theirs > ours else float("inf")


if __name__ == "__main__":
    main()
