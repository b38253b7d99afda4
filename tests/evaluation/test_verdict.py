"""One sentence on an evaluation, for each of the cases it tells apart."""

from types import SimpleNamespace

import pytest

from tamiz.evaluation.cross_validation import find_verdict


def evaluation(low=-0.1, high=0.1, *, value=None, n_kept=3, n_features=10, null=None, sign=1, has_ends=True):
    gap = SimpleNamespace(low=low, high=high, value=(low + high) / 2 if value is None else value, has_ends=has_ends)
    return SimpleNamespace(
        n_features_to_select=n_kept,
        n_features=n_features,
        null=null,
        metric=SimpleNamespace(sign=sign),
        difference=lambda name: gap,
    )


def null(p_value, n_permutations=99):
    return SimpleNamespace(p_value=p_value, n_permutations=n_permutations)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (evaluation(null=null(0.3)), "No sign of signal: shuffled targets do as well (p = 0.30, 99 permutations)."),
        (evaluation(null=null(0.2, 4)), "None of 4 shuffled targets does as well, which are too few"),
        (evaluation(), "3 of 10 columns predict as well as all, as far as these rows can tell (not compared"),
        (evaluation(null=null(0.01)), "predict as well as all, as far as these rows can tell (better than shuffled"),
        (evaluation(n_kept=10), "All 10 columns were kept (not compared with shuffled targets)."),
        (evaluation(0.05, 0.15), "3 of 10 columns predict better than all, by 0.100"),
        (evaluation(-0.15, -0.05), "3 of 10 columns predict worse than all, by 0.100"),
        (evaluation(0.05, 0.15, sign=-1), "predict worse than all"),
        (evaluation(has_ends=False), "how they compare with all cannot be told"),
    ],
)
def test_the_sentence_says_what_the_numbers_do(case, words):
    assert words in find_verdict(case)
