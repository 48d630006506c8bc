"""The arithmetic of the benchmarks: samples, ratios and counts."""

import gc
from collections.abc import Callable

import pytest
import torch

from benchmarks import measure
from benchmarks.cases import BARE, CASES, OURS, STACKED, Case
from benchmarks.goals import GOALS, Goal, verdicts
from benchmarks.imports import time_imports
from benchmarks.measure import Race, Timing, geometric_mean, race
from benchmarks.memory import peak, peak_extra_bytes
from benchmarks.report import table
from benchmarks.results import Result


def result_with(seconds: dict[str, float], peak_bytes: dict[str, int], case: Case = CASES[0]) -> Result:
    timings = {name: Timing((value, value, value), 1) for name, value in seconds.items()}
    return Result(case, "forward", timings, peak_bytes, is_steady=True)


ONE = result_with(
    {OURS: 2.0, BARE: 1.0, "hand": 2.0, STACKED: 20.0, "last": 4.0},
    {OURS: 10, BARE: 20, "hand": 10, STACKED: 80, "last": 40},
)
OTHER = result_with(
    {OURS: 1.0, BARE: 2.0, "hand": 1.0, STACKED: 1.6, "last": 4.0},
    {OURS: 10, BARE: 10, "hand": 10, STACKED: 20, "last": 40},
)


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10.0)


def test_the_geometric_mean_of_no_values_raises():
    with pytest.raises(ValueError, match="the geometric mean of no values is undefined"):
        geometric_mean([])


def test_one_slow_round_does_not_move_the_median():
    assert Timing((1.0, 100.0, 1.1, 0.9, 1.0), 1).median == 1.0


def test_a_ratio_divides_the_first_contestant_by_the_second():
    assert ONE.time_ratio(STACKED, OURS) == 10.0
    assert ONE.time_ratio(OURS, BARE) == 2.0
    assert ONE.memory_ratio(STACKED, OURS) == 8.0
    assert ONE.memory_ratio(OURS, BARE) == 0.5


def test_verdicts_are_geometric_means_over_the_cases():
    found = {verdict.what: verdict for verdict in verdicts([ONE, OTHER], {})}
    assert found["n n -> n n, forward, ours/bare"].value == pytest.approx(1.0)
    assert found["n n -> n n, forward, stacked/ours"].value == pytest.approx(4.0)
    assert found["n n -> n n, forward, stacked/ours, peak memory"].value == pytest.approx(4.0)


def test_verdicts_come_from_the_measurements():
    fast = {verdict.what: verdict.reached for verdict in verdicts([ONE], {})}
    slow = {verdict.what: verdict.reached for verdict in verdicts([OTHER], {})}
    assert fast["n n -> n n, forward, stacked/ours"] is True
    assert slow["n n -> n n, forward, stacked/ours"] is False
    assert fast["n n -> n n, forward, last/ours"] is None


def test_the_largest_ratio_has_a_verdict():
    found = {verdict.what: verdict for verdict in verdicts([ONE, OTHER], {})}
    assert found["n n -> n n, forward, ours/bare"].value == pytest.approx(1.0)
    assert found["n n -> n n, forward, ours/bare, largest"].value == 2.0


def test_no_measurements_have_no_verdicts():
    assert verdicts([], {}) == []


def test_importing_is_compared_with_importing_torch():
    imports = {"torch": Timing((2.0,), 1), "bellnet": Timing((3.0,), 1)}
    (verdict,) = verdicts([], imports)
    assert (verdict.what, verdict.value, verdict.reached) == ("import bellnet / import torch", 1.5, False)


@pytest.mark.parametrize(
    ("goal", "value", "reached"),
    [
        (Goal("at least", 5), 5.1, True),
        (Goal("at least", 5), 4.9, False),
        (Goal("at most", 2), 1.9, True),
        (Goal("at most", 2), 2.1, False),
    ],
)
def test_a_goal_is_a_bound_from_below_or_from_above(goal, value, reached):
    assert goal.is_reached_by(value) is reached


def test_goals_of_speed_ups_are_lower_bounds():
    speed_ups = {what for what, goal in GOALS.items() if goal.sense == "at least"}
    assert {what.rpartition(", ")[2] for what in speed_ups} == {
        "stacked/ours",
        "einsums/ours",
        "dense/sparse",
        "padded/sparse",
        "pairs/together",
        "cases at most 1",
    }


class Clock:
    """A clock that advances only by `wait`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(measure, "perf_counter", clock)
    return clock


def test_contestants_take_turns(clock):
    calls: list[str] = []

    def contestant(name: str) -> Callable[[], None]:
        def call() -> None:
            calls.append(name)
            clock.wait(1)

        return call

    race({"a": contestant("a"), "b": contestant("b")}, rounds=4, warm_up=2)
    # Two calls each to warm up, three to find the number of repetitions; then every round begins with another one.
    assert "".join(calls) == "aaaaa" + "bbbbb" + "ab" + "ba" + "ab" + "ba"


@pytest.mark.parametrize("seconds", [1e-6, 0.0009, 0.019, 0.021, 3.0])
def test_a_sample_is_long_enough_and_counts_one_call(clock, seconds):
    found = race({"nap": lambda: clock.wait(seconds)}, rounds=2).timings["nap"]
    assert found.samples == pytest.approx((seconds, seconds))
    assert found.repetitions * seconds >= measure.LEAST_SECONDS
    assert (found.repetitions == 1) is (seconds > measure.LEAST_SECONDS)


def test_samples_have_no_needless_repetitions(clock):
    assert race({"nap": lambda: clock.wait(1e-4)}, rounds=1).timings["nap"].repetitions < 300


def test_the_garbage_collector_is_disabled_while_timing(clock):
    seen: list[bool] = []
    assert gc.isenabled()
    race({"a": lambda: (seen.append(gc.isenabled()), clock.wait(1))}, rounds=2, warm_up=0)
    assert seen[-2:] == [False, False]
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("fixed_work", "is_steady"), [((1.0, 1.05, 1.1), True), ((1.0, 1.0, 5.0), True), ((1.0, 1.5, 2.0), False)]
)
def test_a_race_on_a_busy_machine_is_not_steady(fixed_work, is_steady):
    assert Race({}, fixed_work).is_steady is is_steady


def test_the_peak_is_above_the_start_and_not_the_end():
    assert peak([4, 2, -4, 3, -5]) == 6
    assert peak([-4, 3]) == 0
    assert peak([]) == 0


def test_peak_memory_counts_temporaries_while_they_live():
    def call() -> None:
        one = torch.empty(1000, dtype=torch.float64)
        two = torch.empty(500, dtype=torch.float64)
        del one
        three = torch.empty(250, dtype=torch.float64)
        del two, three

    assert peak_extra_bytes(call) == 8 * 1500


def test_peak_memory_counts_the_backward_pass():
    x = torch.ones(1000, dtype=torch.float64, requires_grad=True)
    upstream = torch.ones(1000, dtype=torch.float64)

    def call() -> None:
        output = x * 2
        output.backward(upstream)
        x.grad = None

    # The output and the gradient of x; the factor 2 is a tensor of one number.
    assert 8 * 2000 <= peak_extra_bytes(call) <= 8 * 2010


def test_peak_memory_does_not_count_what_the_first_call_caches():
    cached: list[torch.Tensor] = []

    def call() -> None:
        if not cached:
            cached.append(torch.empty(1000))
        torch.empty(10, dtype=torch.float64)

    assert peak_extra_bytes(call) == 80


def test_imports_are_timed_in_fresh_interpreters():
    found = time_imports(rounds=2, modules=("json", "string"))
    assert set(found) == {"json", "string"}
    assert all(len(timing.samples) == 2 and min(timing.samples) > 0 for timing in found.values())


def test_numbers_are_right_aligned_and_words_left_aligned():
    lines = table([["what", "value"], ["a", "1.0"], ["b", "10.0"]]).splitlines()
    assert lines == ["| what | value |", "|------|------:|", "| a    |   1.0 |", "| b    |  10.0 |"]
