"""Explanations of film reviews by 10 words, beside those of LIME, SHAP and integrated gradients: how good, how quick?

The black box and khot's explainers are trained first if the user's cache does not hold them yet, which takes two hours
of a core; the reviews come from khot.datasets. The peers choose the ten words with the largest weights for the class
that the model names, at their default effort. All explain a review at a time, and are charged for what they ask of
the model; khot also tells what the model says of the review and of the ten words.
"""

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
from khot.explain import fidelity

REVIEWS = 200
OURS = {"khot": "subset", "khot, for_class": "subset-for-class"}
Scores = Callable[[np.ndarray, int], np.ndarray]


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


def integrated_gradients(given: explain.Problem) -> Scores:
    from captum.attr import LayerIntegratedGradients

    method = LayerIntegratedGradients(given.black_box.eval(), given.black_box[0])

    def scores(tokens: np.ndarray, label: int) -> np.ndarray:
        row = torch.from_numpy(tokens[None])
        return method.attribute(row, torch.full_like(row, PADDING), target=label).sum(-1)[0].detach().numpy()

    return scores


PEERS = {
    "LIME": ("lime", lime),
    "SHAP (partition)": ("shap", partition_shap),
    "integrated gradients": ("captum", integrated_gradients),
}


def timed(name: str, tokens: np.ndarray, choose: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, float]:
    """What is chosen of each review (n, items), and the mean of the seconds a review, after one to warm up."""
    choose(tokens[0])
    began = time.perf_counter()
    chosen = np.stack([choose(row) for row in tqdm(tokens, desc=name, disable=None)])
    return chosen, (time.perf_counter() - began) / len(tokens)


def main() -> None:
    with runs(None, "full", "reproduce-explain") as folder:
        given = explain.problem("imdb-word", folder)
        explainers = {
            name: given.explainer(method, "search", 0, folder / f"imdb-word-{method}-0")
            for name, method in OURS.items()
        }
    rows = np.random.RandomState(0).choice(len(given.test), REVIEWS, replace=False)
    tokens, masker = given.test[rows], explainers["khot"].masker_
    found = {}
    for name, explainer in explainers.items():
        found[name] = timed(
            name, tokens, lambda row, e=explainer: e.explain(row[None], eligible=explain.words(row[None])).chosen[0]
        )
    for name, (package, make) in PEERS.items():
        try:
            scores = make(given)
        except ImportError as error:
            print(f"  {name} is left out: {error}")
            continue

        def choose(row: np.ndarray, scores: Scores = scores) -> np.ndarray:
            label = int(given.predict_proba(row[None]).argmax())
            eligible = (row != PADDING) & explain.words(row[None])[0]
            return fidelity.largest_items(scores(row, label)[None], eligible[None], given.plan.k)[0]

        found[f"{name}, {package} {version(package)}"] = timed(name, tokens, choose)
    claims = []
    for name, (chosen, seconds) in found.items():
        share = fidelity.post_hoc_accuracy_of(given.predict_proba, masker, tokens, chosen, 5000)
        interval = [100 * share.low, 100 * share.high]
        claims.append({"what": f"{name}: post-hoc accuracy, %", "measured": 100 * share.value, "interval": interval})
        claims.append({"what": f"{name}: ms a review", "measured": 1e3 * seconds})
        if name in explainers:
            claims.append({"what": f"{name}: minutes to fit", "measured": explainers[name].seconds_ / 60})
        else:
            claims += [claim for own in explainers for claim in beside(name, seconds, own, found[own][1], explainers)]
    write("explanations", claims)


def beside(name: str, seconds: float, own: str, ours: float, explainers: dict) -> list[dict]:
    """How much longer a peer takes for a review, and after how many the training of ours has paid."""
    bound = {} if name.startswith("integrated") else {"at_least": 100}
    paid = explainers[own].seconds_ / (seconds - ours) if seconds > ours else float("inf")
    return [
        {"what": f"{name}: times as long as {own}", "measured": seconds / ours, **bound},
        {"what": f"{name}: reviews after which {own} has paid", "measured": paid},
    ]


if __name__ == "__main__":
    main()
