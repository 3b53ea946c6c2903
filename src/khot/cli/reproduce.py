"""`khot reproduce ...`: the tables and figures of the paper."""

from pathlib import Path
from typing import Any, Literal

from cyclopts import App

from khot.cli.options import K, Numbers, WholeNumber, WholeNumbers

reproduce: App = App(name="reproduce", help="Reproduce a table or a figure of the paper.")


@reproduce.command
def synthetic(
    *,
    weights: Numbers = (0.1, 0.2, 0.3, 0.4),
    k: K = 2,
    samples: WholeNumber = 10_000,
    temperatures: Numbers = (0.1, 1.0, 10.0),
    seed: WholeNumber = 0,
    out: Path = Path("results"),
) -> None:
    """Compare the subsets chosen by relaxed samples with their exact probabilities.

    Parameters
    ----------
    weights
        Weights of the items, with spaces between them.
    k
        Size of the subset.
    samples
        Number of samples for each temperature.
    temperatures
        Temperatures of the relaxation, with spaces between them.
    seed
        Seed of the noise.
    out
        Folder for synthetic.json and synthetic.png.
    """
    from khot.experiments import synthetic

    _run(synthetic, out, weights, k, samples, temperatures, seed)


@reproduce.command
def timing(
    *,
    candidates: WholeNumbers = (100, 1000, 5000),
    k: K = 5,
    trials: WholeNumber = 100,
    seed: WholeNumber = 0,
    out: Path = Path("results"),
) -> None:
    """Time a convnet that selects the nearest candidates, by NeuralSort and by the successive softmax.

    Takes a few minutes.

    Parameters
    ----------
    candidates
        Numbers of candidates, with spaces between them.
    k
        Number of candidates to select.
    trials
        Number of trials for each operator; fewer where one takes over a second.
    seed
        Seed of the images and the weights.
    out
        Folder for timing.json and timing.png.
    """
    from khot.experiments import timing

    _run(timing, out, candidates, k, trials, seed)


def _run(experiment: Any, out: Path, *arguments: Any) -> None:
    """Run an experiment, print its table, and write its files."""
    out.mkdir(parents=True, exist_ok=True)
    result = experiment.run(*arguments)
    print(experiment.table(result))
    for path in experiment.write(result, out):
        print(f"wrote {path}")


@reproduce.command
def knn(
    *,
    dataset: Literal["digits", "mnist", "fashion-mnist", "cifar10"] | None = None,
    method: Literal["subset", "neuralsort", "cnn"] | None = None,
    profile: Literal["quick", "full", "long"] = "quick",
    seed: WholeNumber = 0,
    folder: Path | None = None,
    out: Path = Path("results"),
) -> None:
    """Train and test neighbour classifiers, and compare their accuracy with the paper's.

    A training that was stopped continues if the command is run again.

    Parameters
    ----------
    dataset
        Dataset; by default digits, or with --profile full all three of the paper.
    method
        subset for khot's own method, neuralsort, or cnn for the same network with a linear head; by default all three.
    profile
        quick for the digits in less than a minute per method, full for the paper's datasets in 15 to 45 minutes per
        method on two cores, long for CIFAR-10 in two and a half hours.
    seed
        Seed of the weights, the held-out images and the noise.
    folder
        Folder to keep the trainings in; by default in the user's cache. The quick profile keeps nothing by default.
    out
        Folder for knn-DATASET-METHOD.json and the pictures.
    """
    from khot.experiments import knn
    from khot.experiments.runs import runs

    out.mkdir(parents=True, exist_ok=True)
    names = [dataset] if dataset else [name for kind, name in knn.PLANS if kind == profile]
    with runs(folder, profile, "reproduce-knn") as trainings:
        for name in names:
            for kind in [method] if method else knn.METHODS:
                for path in knn.write(*knn.run(name, kind, profile, trainings, seed), out):
                    print(f"wrote {path}")
    print(knn.table(knn.results(out)))


@reproduce.command
def embed(
    *,
    dataset: Literal["digits", "mnist", "20newsgroups"] | None = None,
    dims: WholeNumbers = (),
    method: Literal["tsne", "subset", "subset-pretrain", "subset-reversed", "subset-ours"] | None = None,
    profile: Literal["quick", "full", "ablation"] = "quick",
    seed: WholeNumber = 0,
    folder: Path | None = None,
    out: Path = Path("results"),
) -> None:
    """Train and measure neighbour embeddings, and compare their quality with the paper's.

    A training that was stopped continues if the command is run again with the same --folder.

    Parameters
    ----------
    dataset
        Dataset; by default digits, or with --profile full both of the paper.
    dims
        Numbers of dimensions, with spaces between them; by default 2, or with --profile full 2, 10 and 30.
    method
        tsne for parametric t-SNE; subset and subset-pretrain with the paper's settings, subset-reversed with the noise
        of the code of 2019 (in two dimensions only), subset-ours with our own settings; by default all.
    profile
        quick for the digits in less than a minute, full for the paper's datasets, ablation for the effect of each of
        our settings in short trainings on MNIST.
    seed
        Seed of the weights, the splits and the noise.
    folder
        Folder to keep the trainings in; by default in the user's cache. The quick profile keeps nothing by default.
    out
        Folder for embed-DATASET-METHOD-dDIM.json and the maps, or for embed-ablation.json.
    """
    from khot.experiments import embed, embed_ablation
    from khot.experiments.runs import runs

    out.mkdir(parents=True, exist_ok=True)
    names = [dataset] if dataset else [name for kind, name in embed.PLANS if kind == profile]
    dims = dims or ((2,) if profile == "quick" else embed.DIMENSIONS)
    with runs(folder, profile, "reproduce-embed") as trainings:
        if profile == "ablation":
            rows = embed_ablation.run(trainings, lambda row: print(embed_ablation.line(row), flush=True))
            print(f"wrote {embed_ablation.write(rows, out)}")
            return
        for name in names:
            for d, kind in embed.cells(dims, method):
                for path in embed.write(*embed.run(name, kind, d, profile, trainings, seed), out):
                    print(f"wrote {path}")
    print(embed.table(embed.results(out)))


@reproduce.command
def explain(
    *,
    task: Literal["known-answers", "imdb-word", "imdb-sent"] | None = None,
    method: Literal["subset", "l2x", "subset-reversed", "subset-for-class"] | None = None,
    profile: Literal["quick", "full"] = "quick",
    seeds: WholeNumbers = (0, 1),
    folder: Path | None = None,
    out: Path = Path("results"),
) -> None:
    """Explain models by k features or words, and compare the faithfulness of explanations with the paper's.

    A training that was stopped continues if the command is run again.

    Parameters
    ----------
    task
        known-answers for synthetic problems whose decisive features are known; imdb-word and imdb-sent for film
        reviews, by 10 words and by one sentence. By default known-answers, or with --profile full all three.
    method
        subset for khot's own method, l2x for the independent samples of L2X; for film reviews also subset-reversed,
        with the noise of the code of 2019, and subset-for-class, for items in favour of the model's class. By default
        the first two.
    profile
        quick for the synthetic problems in about a minute, and for 4,000 film reviews, too few to reach the paper's
        numbers; full for everything, in some hours on two cores.
    seeds
        Seeds for the film reviews, with spaces between them; the temperature is chosen with the first.
    folder
        Folder to keep the trainings in; by default in the user's cache. The quick profile keeps nothing by default.
    out
        Folder for explain-TASK-METHOD.json and the pages, and for known-answers.json.
    """
    from khot.experiments import explain, known_answers
    from khot.experiments.runs import runs

    out.mkdir(parents=True, exist_ok=True)
    methods = (method,) if method else ("subset", "l2x")
    tasks = (task,) if task else ("known-answers", *(explain.TASKS if profile == "full" else ()))
    if "known-answers" in tasks:
        rows = [known_answers.run(name, kind, profile) for name in known_answers.PROBLEMS for kind in methods]
        print(known_answers.table(rows))
        print(f"wrote {known_answers.write(rows, out)}")
    with runs(folder, profile, "reproduce-explain") as trainings:
        for name in tasks:
            for kind in methods if name in explain.TASKS else ():
                for path in explain.write(explain.run(name, kind, profile, seeds, trainings), out):
                    print(f"wrote {path}")
    if found := explain.results(out):
        print(explain.table(found))
