"""Settings of a selection: defaults, limits, bad values."""

import pytest

from tamiz.core.rule import Rule

THREE = {"n_features": 3, "n_features_to_select": 0}


def test_the_defaults_are_the_papers():
    rule = Rule(5, 2)
    assert (rule.variant, rule.mu, rule.rho) == ("soft", 1.0, 0.75)


def test_the_numbers_for_compiled_code_are_those_of_the_rule():
    rule = Rule(9, 2, mu=3, mask_learning_rate=0.5, beta1=0.1, beta2=0.2, epsilon=0.3)
    assert rule.numbers == (2, 3.0, 0.5, 0.1, 0.2, 0.3, 0.0, None)
    assert all(type(value) in (int, float) for value in rule.numbers[:-1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "medium"}, "Unknown variant 'medium'.* There are: hard, soft, ranking"),
        ({"n_features_to_select": 0}, "from 1 to the 5 features there are, got 0"),
        ({"n_features_to_select": 6}, "from 1 to the 5 features there are, got 6"),
        ({"mu": 0.0}, "mu is out of range"),
        ({"rho": 1.5}, "rho is out of range"),
        ({"ramp_steps": 0}, "ramp_steps is out of range"),
        ({"warmup_steps": -1}, "warmup_steps is out of range"),
        ({"max_steps": 0}, "max_steps is out of range"),
        ({"mask_learning_rate": 0.0}, "mask_learning_rate is out of range"),
        ({"beta1": 1.0}, "beta1 is out of range"),
        ({"beta2": 1.0}, "beta2 is out of range"),
        ({"epsilon": 0.0}, "epsilon is out of range"),
        ({"mask_optimizer": "adagrad"}, "Unknown mask_optimizer 'adagrad'.* There are: adam, rmsprop, sign, sgd"),
        (THREE | {"costs": [1, 2, 3]}, "costs and budget go together"),
        (THREE | {"budget": 3}, "costs and budget go together"),
        (THREE | {"costs": [1, 2], "budget": 2}, "a finite number above 0 for each of the 3 features"),
        (THREE | {"costs": [1, 2, 0], "budget": 2}, "a finite number above 0"),
        (THREE | {"costs": [1, 2, 3], "budget": 2}, "at least the largest cost, 3"),
        (THREE | {"costs": [1, 2, 3], "budget": 6}, "less than the sum of all, 6"),
        (THREE | {"costs": [1, 2, 3], "budget": 4, "n_features_to_select": 1}, "must be 0, got 1"),
        (THREE | {"strength": 0.0}, "strength must be a finite number above 0"),
        ({"strength": 0.1}, "neither M nor costs"),
        (THREE | {"strength": 0.1, "costs": [1, 1, 1], "budget": 2}, "neither M nor costs"),
        (THREE | {"strength": 0.1, "max_steps": 10}, "leave max_steps at None"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Rule(**{"n_features": 5, "n_features_to_select": 2, **change})
