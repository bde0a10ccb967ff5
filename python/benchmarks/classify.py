"""The speed of classifying flows and training models, over generated flows, compared with scikit-learn.

    python benchmarks/classify.py [--train 500000] [--flows 10000000] [--rounds 5]

Rates are of interleaved rounds. The flows are drawn from overlapping distributions, with two labels in a hundred
wrong: their accuracy does not apply to real traffic.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from marline.flows.classify.learners import ALGORITHMS
from marline.flows.classify.trees import Trees

if TYPE_CHECKING:
    from collections.abc import Callable

    from marline.arrays import Classes, Numbers

THESIS_TRAIN_S = {"bayesnet": 12, "c45": 141, "random_forest": 305, "nbtree": 481}
"""For 500,000 flows, on a processor of 2.5 GHz (section 3.2.8)."""

THESIS_PER_S = {"c45": 10e6 / 31, "bayesnet": 10e6 / 63, "nbtree": 10e6 / 106, "random_forest": 10e6 / 861}


def main() -> None:
    """Train, classify, print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=int, default=500_000)
    parser.add_argument("--flows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows, classes = generated(arguments.train, seed=1)
    print(f"training with {arguments.train:,} flows")
    learnt = {}
    for name, learn in ALGORITHMS.items():
        began = time.perf_counter()
        learnt[name] = learn(rows, classes, 3, 1)
        took = time.perf_counter() - began
        print(f"  {name:14}{took:8.1f} s   thesis {THESIS_TRAIN_S[name]:4} s for 500,000", flush=True)
    plain = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=50, random_state=1)
    began = time.perf_counter()
    plain.fit(rows.astype(np.float32), classes)
    print(f"  scikit-learn's tree{time.perf_counter() - began:3.1f} s, {plain.tree_.node_count:,} nodes")

    test, truth = generated(arguments.flows, seed=2)
    single = test.astype(np.float32)
    compiled = Trees.of_tree(plain)
    runs: dict[str, tuple[Callable[[Numbers], Classes], Numbers, float]] = {
        "c45": (learnt["c45"].classify, test, THESIS_PER_S["c45"]),
        "scikit-learn's tree, compiled": (compiled.classify, single, 0),
        "scikit-learn's tree, predict": (plain.predict, single, 0),
    }
    slow = test[: max(1, arguments.flows // 100)]
    runs |= {name: (learnt[name].classify, slow, THESIS_PER_S[name]) for name in ALGORITHMS if name != "c45"}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for name, (classify, some, _) in runs.items():
        classify(some[:1000])
        print(f"  accuracy {name:32}{100 * (classify(some) == truth[: len(some)]).mean():6.1f} %", flush=True)
    for _ in range(arguments.rounds):
        for name, (classify, some, _) in runs.items():
            began = time.perf_counter()
            classify(some)
            rates[name].append(len(some) / (time.perf_counter() - began))
    print(f"classifying, million flows/s, median (least) of {arguments.rounds} rounds")
    for name, (_, _, thesis) in runs.items():
        beside = f"   thesis {thesis / 1e6:.3f}" if thesis else ""
        print(f"  {name:32}{np.median(rates[name]) / 1e6:8.3f} ({min(rates[name]) / 1e6:.3f}){beside}")
    assert (compiled.classify(single) == plain.predict(single)).all()


def generated(flows: int, seed: int) -> tuple[Numbers, Classes]:
    """Seven numbers of each flow, and its class."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(3, size=flows, p=[0.6, 0.3, 0.1])
    rows = np.exp(rng.normal(size=(flows, 7)) + np.array([0.0, 0.8, -0.7])[classes, None] * np.linspace(0.3, 1.2, 7))
    wrong = rng.random(flows) < 0.02
    classes[wrong] = rng.integers(0, 3, int(wrong.sum()))
    return rows, classes


if __name__ == "__main__":
    main()
