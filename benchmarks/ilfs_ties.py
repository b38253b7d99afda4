"""Count the features that ILFS ties at the top, by the rounds of EM: the paper reports 20 to 80 of them.

Features tie if their p(relevant | feature) differs by less than a tolerance from the largest: exactly equal numbers, numbers
equal in float32, or equal to three digits as a table would show them.

    python benchmarks/ilfs_ties.py --datasets lymphoma,colon,leukemia_3571,lung --splits 3
"""

from __future__ import annotations

import argparse

from tamiz.baselines import ILFS
from tamiz.paper import find_data_home
from tamiz.paper.recipes import load_checked, load_split, unit_range

ROUNDS = (15, 35, 100, 300)
TOLERANCES = (1e-15, 1e-7, 1e-3)


def main():
    """Print the range over the splits of the number of ties, for each tolerance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default="lymphoma,colon,leukemia_3571,lung")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    home = str(find_data_home())
    print("| data | rounds of EM | " + " | ".join(f"within {tolerance:g}" for tolerance in TOLERANCES) + " |")
    print("|---|---:|" + "---:|" * len(TOLERANCES))
    for dataset in options.datasets.split(","):
        _, checksum = load_checked(dataset, home)
        parts = [load_split(dataset, home, checksum, split) for split in range(options.splits)]
        for rounds in ROUNDS:
            relevance = [ILFS(10, n_rounds=rounds).fit(unit_range(p.train), p.y_train).relevance_ for p in parts]
            cells = []
            for tolerance in TOLERANCES:
                counts = [int((values >= values.max() - tolerance).sum()) for values in relevance]
                cells.append(f"{min(counts)} to {max(counts)}")
            print(f"| {dataset} | {rounds} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
