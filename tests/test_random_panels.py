"""The first cases of fuzz/random_panels.py, and cases that failed once."""

import numpy as np
import pytest
import random_panels

# Copies of different weights, opposite camps, -0, subnormal scores, models that only
# rounding could tell apart, …
ONCE_BROKEN = (
    13,
    25,
    41,
    167,
    168,
    224,
    230,
    252,
    277,
    311,
    372,
    5197,
    5448,
    5504,
    5787,
)


@pytest.mark.parametrize(
    "numbers", [range(20), ONCE_BROKEN], ids=["first", "once broken"]
)
def test_every_method_keeps_its_promises(numbers):
    for number in numbers:
        panel = random_panels.draw(number)
        for method in random_panels.METHODS + (
            random_panels.OTHERS if number % 3 == 0 else []
        ):
            assert random_panels.faults(panel, method, number) == [], (
                number,
                panel.kind,
                method,
            )


@pytest.mark.parametrize(
    "number", [0, 1795]
)  # 1795: held-out raters see no difference, but for rounding
def test_the_default_does_not_hang_on_order(number):
    assert random_panels.faults_of_default(random_panels.draw(number), number) == []


def test_a_broken_promise_is_noticed(monkeypatch):
    """A method that looks at where a model stands is no longer independent of order."""
    method = random_panels.METHODS[0]
    first_model = staticmethod(lambda block, solution: 1.5 * block._scores[0])
    monkeypatch.setattr(type(method), "_apply", first_model)
    scores = np.random.default_rng(0).random((3, 5, 4))
    result = random_panels.faults(
        random_panels.Panel(scores, None, "scores"), method, 0
    )
    assert any(item.startswith("order") for item in result)
    assert any(item.startswith("out of range") for item in result)
