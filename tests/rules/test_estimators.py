"""Figures on k of n trials, by hand arithmetic (V37), and none where n < k (known failure H1)."""

from __future__ import annotations

import pytest

from boxeval.rules.estimators import estimate, macro_average

T, F = True, False


@pytest.mark.contract("V37")
@pytest.mark.parametrize(
    ("passes", "k", "rate", "any_", "all_", "at", "power", "unbiased"),
    [
        # 2 of 4, k = 2: 1 - C(2,2)/C(4,2) = 5/6; 0.5^2; C(2,2)/C(4,2) = 1/6
        ([T, F, T, F], 2, 0.5, True, False, 5 / 6, 0.25, 1 / 6),
        ([F, F, T, T], 2, 0.5, False, False, 5 / 6, 0.25, 1 / 6),
        # 3 of 5, k = 3: C(2,3) = 0, so 1; 0.6^3 = 0.216; C(3,3)/C(5,3) = 1/10
        ([T, T, T, F, F], 3, 0.6, True, True, 1.0, 0.216, 0.1),
        ([T], 1, 1.0, True, True, 1.0, 1.0, 1.0),
        ([F], 1, 0.0, False, False, 0.0, 0.0, 0.0),
        ([F, F, F], 3, 0.0, False, False, 0.0, 0.0, 0.0),
    ],
)
def test_figures(
    passes: list[bool], k: int, rate: float, any_: bool, all_: bool, at: float, power: float, unbiased: float
) -> None:
    found = estimate(passes, k)
    assert (found.k, found.trials, found.any_of_k, found.all_of_k) == (k, len(passes), any_, all_)
    assert found.pass_rate == pytest.approx(rate)
    assert found.pass_at_k == pytest.approx(at)
    assert found.pass_pow_k == pytest.approx(power)
    assert found.pass_pow_k_unbiased == pytest.approx(unbiased)


@pytest.mark.contract("V37")
@pytest.mark.parametrize(("passes", "k", "rate"), [([F, F], 5, 0.0), ([T], 2, 1.0), ([], 1, None)])
def test_too_few_trials_say_nothing(passes: list[bool], k: int, rate: float | None) -> None:
    found = estimate(passes, k)
    figures = (found.any_of_k, found.all_of_k, found.pass_at_k, found.pass_pow_k, found.pass_pow_k_unbiased)
    assert figures == (None,) * 5
    assert found.pass_rate == rate


def test_the_mean_counts_every_task_alike_and_lacks_what_one_lacks() -> None:
    one, other, ragged = estimate([T, T, T, T], 2), estimate([T, F], 2), estimate([T], 2)
    mean = macro_average([one, other])
    assert (mean.pass_rate, mean.pass_pow_k, mean.all_of_k) == (0.75, 0.625, 0.5)
    assert mean.pass_pow_k_unbiased == 0.5
    assert macro_average([one, ragged]).pass_at_k is None
    assert macro_average([one, ragged]).pass_rate == 1.0
    assert macro_average([]).pass_rate is None
