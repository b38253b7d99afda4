"""Show that the tests of the method can fail: change the source in one place at a time and run the tests that must notice.

The source and the tests are copied to a temporary directory; nothing here is touched. A mutation is *killed* if one of its
tests fails, *survived* if all pass, *stale* if the text to replace is not in the source exactly once any more.

    python benchmarks/mutations.py                 # all
    python benchmarks/mutations.py --only penalty  # those whose file or name holds the word
    python benchmarks/mutations.py --list
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAPER, STEP, RULE = "tests/core/test_paper.py", "tests/core/test_step.py", "tests/core/test_rule.py"
PRICE = "tests/core/test_price.py"
SCHEDULE, COMPILED, LOOP = "tests/core/test_schedule.py", "tests/core/test_compiled.py", "tests/engines/test_loop.py"

PROTOCOLS, IMAGES, TABLES = (f"tests/paper/test_{name}.py" for name in ("protocols", "images", "tables"))


@dataclass(frozen=True)
class Mutation:
    """Describe a wrong program: a replacement in one file, and the tests that must fail under it."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    compiled: bool = False
    """Whether compiled code changes, so that nothing compiled before may be used."""


MUTATIONS = (
    # Theorem 1: the penalty and its gradient.
    Mutation(
        "L12 missing from the gradient",
        "core/step.py",
        "return _weighed(1 - 2 * gamma + (1 + mu) * side, costs)",
        "return _weighed(0 * gamma + (1 + mu) * side, costs)",
        (f"{PAPER}::test_theorem_1_a_step_goes_towards_m_and_widens_the_gaps",),
    ),
    Mutation(
        "LM missing from the gradient",
        "core/step.py",
        "return _weighed(1 - 2 * gamma + (1 + mu) * side, costs)",
        "return _weighed(1 - 2 * gamma + 0 * side, costs)",
        (f"{PAPER}::test_lemma_1_above_the_target_every_entry_of_the_gradient_is_at_least_mu",),
    ),
    Mutation(
        "gradient of LM with the wrong sign",
        "core/step.py",
        "side = np.sign(_weighed(gamma, costs).sum() - target)",
        "side = np.sign(target - _weighed(gamma, costs).sum())",
        (f"{PAPER}::test_gradients_match_finite_differences",),
    ),
    Mutation(
        "mu counted twice in the gradient",
        "core/step.py",
        "return _weighed(1 - 2 * gamma + (1 + mu) * side, costs)",
        "return _weighed(1 - 2 * gamma + (1 + 2 * mu) * side, costs)",
        (f"{PAPER}::test_gradients_match_finite_differences",),
    ),
    Mutation(
        "L12 as |g| - |g|_2",
        "core/step.py",
        "return _weighed(gamma * (1 - gamma), costs).sum()",
        "return gamma.sum() - (gamma * gamma).sum() ** 0.5",
        (f"{PAPER}::test_lemma_3_the_binary_penalty_is_zero_exactly_for_binary_masks",),
    ),
    Mutation(
        "LM only above M",
        "core/step.py",
        "return (1 + mu) * abs(_weighed(gamma, costs).sum() - target)",
        "return (1 + mu) * np.clip(gamma.sum() - target, 0, None)",
        (f"{PAPER}::test_lemma_4_the_count_penalty_is_zero_exactly_where_the_sum_is_m",),
    ),
    # The mixture, equations 4 to 7.
    Mutation(
        "loss gradient not scaled to length one",
        "core/step.py",
        "return (1 - alpha) * unit(loss_gradient) + alpha",
        "return (1 - alpha) * loss_gradient + alpha",
        (COMPILED,),
    ),
    Mutation(
        "alpha is 0 throughout",
        "core/rule.py",
        "return np.minimum(1.0, since / rule.ramp_steps)",
        "return np.minimum(0.0, since / rule.ramp_steps)",
        (f"{PAPER}::test_theorem_2_the_penalty_selects_not_the_step_limit",),
    ),
    Mutation(
        "alpha twice as fast",
        "core/rule.py",
        "return np.minimum(1.0, since / rule.ramp_steps)",
        "return np.minimum(1.0, 2 * since / rule.ramp_steps)",
        (f"{SCHEDULE}::test_alpha_rises_to_one_and_stays",),
    ),
    Mutation(
        "warm-up counts for alpha",
        "core/rule.py",
        "np.arange(first_step, first_step + n_steps) - rule.warmup_steps)",
        "np.arange(first_step, first_step + n_steps) - 0)",
        (SCHEDULE,),
    ),
    # Equation 8.
    Mutation(
        "the soft target is M",
        "core/rule.py",
        "return (1.0 - rho) * rule.size",
        "return 1.0 * rule.size + 0 * rho",
        (SCHEDULE,),
    ),
    Mutation(
        "rho does not rise after the ramp",
        "core/rule.py",
        "rule.rho + (1.0 - rule.rho) * late",
        "rule.rho + 0 * late",
        (SCHEDULE,),
    ),
    # Defaults of the paper.
    Mutation("mu is 2 by default", "core/rule.py", "    mu: float = 1.0", "    mu: float = 2.0", (RULE,)),
    Mutation("rho is 0.5 by default", "core/rule.py", "    rho: float = 0.75", "    rho: float = 0.5", (RULE,)),
    Mutation(
        "mu is ignored in the step",
        "core/step.py",
        "penalty_gradient(gamma, target, numbers.mu, weights)",
        "penalty_gradient(gamma, target, 0.0, weights)",
        (f"{PAPER}::test_mu_reaches_the_step",),
    ),
    # The step.
    Mutation(
        "gamma moves in the warm-up",
        "core/step.py",
        "if step <= rule.warmup_steps:",
        "if step < 0:",
        (STEP,),
    ),
    Mutation(
        "eliminated features count in the length of the gradient",
        "core/step.py",
        "alive = state.rank <= m",
        "alive = state.rank >= 0",
        (f"{COMPILED}::test_follows_the_core",),
    ),
    Mutation(
        "gamma is not clipped",
        "core/step.py",
        "moved._replace(gamma=np.clip(value, 0, 1))",
        "moved._replace(gamma=value)",
        (PAPER,),
    ),
    Mutation(
        "fewer than M may be left",
        "core/step.py",
        "eliminated = candidates & (place < n_alive - n_features_to_select)",
        "eliminated = candidates & (place < n_alive)",
        (STEP,),
    ),
    Mutation(
        "the smallest survive",
        "core/step.py",
        "key = np.where(among, value, np.inf)",
        "key = np.where(among, -value, np.inf)",
        (STEP,),
    ),
    Mutation(
        "closed before gamma is binary",
        "core/step.py",
        "return bool((kept & (state.gamma == 1)).sum() == state.kept)",
        "return bool(kept.sum() == state.kept)",
        (PAPER,),
    ),
    # A strength in place of M.
    Mutation(
        "the price is not in the gradient",
        "core/step.py",
        "loss_gradient + rule.strength",
        "loss_gradient",
        (PRICE,),
    ),
    Mutation("the count penalty stays beside the price", "core/rule.py", "else -1.0)", "else self.mu)", (PRICE,)),
    Mutation("the line is drawn at a quarter", "core/step.py", "BOUNDARY = 0.5", "BOUNDARY = 0.25", (PRICE,)),
    # The compiled twin, and the engine that fuses it.
    Mutation(
        "compiled: L12 missing from the gradient",
        "core/compiled.py",
        "mixed = loss_factor * loss_gradient + penalty_factor * (shift - np.float32(2.0) * gamma)",
        "mixed = loss_factor * loss_gradient + penalty_factor * shift",
        (f"{COMPILED}::test_follows_the_core",),
        compiled=True,
    ),
    Mutation(
        "compiled: mu is ignored",
        "core/compiled.py",
        "shift = np.float32(1.0 + (1.0 + rule.mu) * np.sign(total - target))",
        "shift = np.float32(1.0 + 1.5 * np.sign(total - target))",
        (f"{COMPILED}::test_follows_the_core",),
        compiled=True,
    ),
    Mutation(
        "compiled: fewer than M may be left",
        "core/compiled.py",
        "return min(n, mask.counters[Slot.OPEN] - rule.n_features_to_select)",
        "return min(n, mask.counters[Slot.OPEN])",
        (f"{COMPILED}::test_features_that_reach_zero_in_one_step_leave_exactly_m",),
        compiled=True,
    ),
    Mutation(
        "linear engine: gamma without the sign of the weights",
        "engines/design.py",
        "out[j] = (out[j] if c > 0 else np.float32(0.0)) + w[j] * g[j]",
        "out[j] = (out[j] if c > 0 else np.float32(0.0)) + abs(w[j]) * g[j]",
        (f"{LOOP}::test_same_batches_same_path[squared_hinge-1-hard-linear]",),
        compiled=True,
    ),
    Mutation(
        "linear engine: no weight decay",
        "engines/loop.py",
        "np.float32(2.0 * l2)",
        "np.float32(0.0 * l2)",
        (f"{LOOP}::test_same_batches_same_path[squared_hinge-1-hard-linear]",),
        compiled=True,
    ),
    Mutation(
        "linear engine: a closed mask does not wait",
        "engines/loop.py",
        "refining = phase == Phase.REFINEMENT.value and step > training.refinement_from",
        "refining = phase == Phase.REFINEMENT.value",
        ("tests/estimators/test_paper_schedule.py::test_the_refinement_follows_the_added_epochs",),
        compiled=True,
    ),
    Mutation(
        "the paper's T in steps, not epochs",
        "engines/schedule.py",
        '"ramp_steps": PAPER_RAMP_EPOCHS[variant] * epoch,',
        '"ramp_steps": PAPER_RAMP_EPOCHS[variant],',
        ("tests/engines/test_schedule.py::test_the_papers_schedule_is_counted_in_epochs",),
    ),
    Mutation(
        "rho does not rise before a step limit inside the ramp",
        "core/rule.py",
        "begin = min(rule.ramp_steps, 0.75 * limit)",
        "begin = rule.ramp_steps",
        (SCHEDULE,),
    ),
    # The wiring of the protocols.
    Mutation(
        "networks on selected columns are trained by the defaults",
        "paper/recipes.py",
        'training = Training.paper(warmup_steps=0) if recipe == "paper" else None',
        "training = None",
        (f"{PROTOCOLS}::test_every_network_is_trained_by_the_recipe",),
    ),
    Mutation(
        "the recipe of the paper is the defaults",
        "paper/recipes.py",
        '{"training": Training.paper()},',
        '{"training": Training()},',
        (f"{PROTOCOLS}::test_the_recipe_of_the_paper_normalises_by_plain_statistics",),
    ),
    Mutation(
        "filters see rows that are not scaled",
        "paper/recipes.py",
        "train = unit_range(train.toarray()",
        "train = (train.toarray()",
        (f"{PROTOCOLS}::test_filters_see_unit_ranges_and_networks_the_rows_as_they_are",),
    ),
    Mutation(
        "C of the SVM by three folds",
        "paper/recipes.py",
        'SVM_FOLDS, SVM_NORMALIZATION = 5, "erf2"',
        'SVM_FOLDS, SVM_NORMALIZATION = 3, "erf2"',
        (f"{PROTOCOLS}::test_filters_see_unit_ranges_and_networks_the_rows_as_they_are",),
    ),
    Mutation(
        "SVM normalised with the square root of two",
        "paper/recipes.py",
        'SVM_FOLDS, SVM_NORMALIZATION = 5, "erf2"',
        'SVM_FOLDS, SVM_NORMALIZATION = 5, "erf"',
        (f"{PROTOCOLS}::test_filters_see_unit_ranges_and_networks_the_rows_as_they_are",),
    ),
    Mutation(
        "three-layer: networks anew by the defaults",
        "paper/microarray.py",
        "network_for(picked.columns.size, recipe, seed, network)",
        "network_for(picked.columns.size, None, seed, network)",
        (f"{PROTOCOLS}::test_every_network_is_trained_by_the_recipe",),
    ),
    Mutation(
        "images: the mask is always soft",
        "paper/images.py",
        "mask = FeatureMask(pictures.n_features, m, variant,",
        'mask = FeatureMask(pictures.n_features, m, "soft",',
        (f"{IMAGES}::test_e2efs_is_trained_selected_and_refined_as_the_paper_says",),
    ),
    Mutation(
        "images: no pretraining",
        "paper/images.py",
        "pretraining = train_network(plan, start, pictures.train, pictures, seed)",
        "pretraining = 0.0",
        (f"{IMAGES}::test_e2efs_is_trained_selected_and_refined_as_the_paper_says",),
    ),
    Mutation(
        "images: the refinement does not wait for the epochs of the selection",
        "paper/images.py",
        "**plan.phases(variant, n_rows),",
        '**{**plan.phases(variant, n_rows), "selection_steps": 0},',
        (f"{IMAGES}::test_e2efs_is_trained_selected_and_refined_as_the_paper_says",),
    ),
    Mutation(
        "a number of the paper's table changed by 0.01",
        "paper/numbers.json",
        '"colon": [0.848, 0.06]',
        '"colon": [0.838, 0.06]',
        (f"{TABLES}::test_no_published_number_has_changed",),
    ),
    Mutation(
        "bold rows with few splits",
        "paper/tables.py",
        "SPLITS_TO_TEST = 6",
        "SPLITS_TO_TEST = 2",
        (f"{TABLES}::test_few_splits_make_nothing_bold_and_both_recipes_are_rows",),
    ),
    Mutation(
        "dead networks are not counted",
        "paper/recipes.py",
        "dead = bool(np.ptp(outputs, axis=0).max() <=",
        "dead = bool(np.ptp(outputs, axis=0).max() < -1 +",
        (f"{PROTOCOLS}::test_dead_networks_are_told_from_living_ones",),
    ),
)


def copy_tree(target: Path) -> None:
    """Copy what the tests need, with compiled code: it stays valid, because the times of the files are kept."""
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, target / folder, symlinks=True)
    shutil.copy2(ROOT / "pyproject.toml", target)


def run(mutation: Mutation, tree: Path, scratch: Path) -> str:
    """Apply a mutation, run its tests, take it back; return killed, survived, stale or the error of pytest."""
    path = tree / "src/tamiz" / mutation.file
    source, times = path.read_text(encoding="utf-8"), path.stat()
    if source.count(mutation.before) != 1:
        return "STALE"
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    if mutation.compiled:
        # numba looks at the time of the file of a function, not of those that it calls: compile everything anew.
        environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=scratch)
    path.write_text(source.replace(mutation.before, mutation.after), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
        )
    finally:
        path.write_text(source, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    if done.returncode == 1:
        return "killed"
    return "SURVIVED" if done.returncode == 0 else f"ERROR {done.returncode}: {done.stdout.strip().splitlines()[-1:]}"


def main() -> int:
    """Print a table; the exit code is 1 if a mutation was not killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word in the name or the file of a mutation")
    parser.add_argument("--list", action="store_true", help="print the mutations, run nothing")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.name or options.only in mutation.file]
    print("| mutation | file | outcome | seconds |\n|---|---|---|---:|")
    if options.list:
        for mutation in chosen:
            print(f"| {mutation.name} | {mutation.file} | – | – |")
        return 0
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        copy_tree(scratch / "tree")
        for mutation in chosen:
            started = time.perf_counter()
            outcomes.append(run(mutation, scratch / "tree", scratch))
            seconds = time.perf_counter() - started
            print(f"| {mutation.name} | {mutation.file} | {outcomes[-1]} | {seconds:.0f} |", flush=True)
    print(f"\n{outcomes.count('killed')} of {len(outcomes)} killed.")
    return 0 if outcomes.count("killed") == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
