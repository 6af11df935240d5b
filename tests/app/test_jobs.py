"""Work in the background: progress, cancelling, one at a time, a bounded queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hardmax as hm
from hardmax.app.jobs import BusyError, Cancelled, Job, JobPool, Jobs
from visits import Loop


class Bench:
    """Jobs with a loop that the test turns, and what they brought."""

    def __init__(self, pool: JobPool) -> None:
        self.loop = Loop()
        self.results: list[Any] = []
        self.errors: list[BaseException] = []
        self.shown: list[Job | None] = []
        self.jobs = Jobs(pool, self.loop.add_next_tick_callback, self.shown.append)

    def start(self, work: Callable[[Job], Any]) -> Job:
        return self.jobs.start("work", work, self.results.append, self.errors.append)

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.loop.waiting.get(timeout=20)()


@pytest.fixture
def pool() -> Iterator[JobPool]:
    made = JobPool(workers=1, waiting=2)
    yield made
    made.close()


def test_a_result_arrives_on_the_loop_and_not_before(pool: JobPool) -> None:
    bench = Bench(pool)
    here = threading.get_ident()
    bench.start(lambda job: threading.get_ident())
    assert bench.results == []
    while not bench.results:
        bench.turn()
    assert bench.results[0] != here
    assert bench.jobs.current is None
    assert bench.shown[-1] is None


def test_errors_arrive_too_and_the_thread_lives_on(pool: JobPool) -> None:
    bench = Bench(pool)
    bench.start(lambda job: hm.HardmaxLayer(alpha=-1.0))
    while not bench.errors:
        bench.turn()
    assert isinstance(bench.errors[0], hm.InputError)
    bench.start(lambda job: "next")
    while not bench.results:
        bench.turn()
    assert bench.results == ["next"]


def test_a_library_function_reports_and_is_cancelled_in_the_middle(pool: JobPool) -> None:
    bench = Bench(pool)
    ticks: list[float] = []
    ended = threading.Event()

    def work(job: Job) -> None:
        def tell(stage: str, done: float, total: float | None) -> None:
            ticks.append(done)
            if done == 5:
                job.cancel()
            job.tell(stage, done, total)

        try:
            tokens = hm.make_tokens("gaussian", 20, 2, random_state=0)
            hm.simulate(tokens, hm.SoftmaxLayer(), depth=1000, progress=tell)
        except Cancelled:
            ended.set()
            raise

    bench.start(work)
    assert ended.wait(20)
    assert ticks == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert bench.results == bench.errors == []


def test_a_new_job_takes_the_place_of_the_old(pool: JobPool) -> None:
    bench = Bench(pool)
    gate = threading.Event()
    old = bench.start(lambda job: gate.wait(20))
    bench.start(lambda job: "new")
    assert old.cancelled
    gate.set()
    while not bench.results:
        bench.turn()
    assert bench.results == ["new"]


def test_the_queue_is_bounded_and_other_sessions_keep_their_place(pool: JobPool) -> None:
    gate = threading.Event()
    benches = [Bench(pool) for _ in range(4)]
    for bench in benches[:3]:  # one works, two wait
        bench.start(lambda job: gate.wait(20))
    with pytest.raises(BusyError, match="2 other jobs are waiting"):
        benches[3].start(lambda job: None)
    gate.set()
    for bench in benches[:3]:
        while not bench.results:
            bench.turn()
    benches[3].start(lambda job: "room again")
    while not benches[3].results:
        benches[3].turn()
    assert benches[3].results == ["room again"]


def test_reports_are_bounded_and_not_too_many(pool: JobPool) -> None:
    bench = Bench(pool)

    def work(job: Job) -> float | None:
        for k in range(10_000):
            job.report(k / 5_000, "step")
        return job.fraction

    bench.start(work)
    while not bench.results:
        bench.turn()
    assert bench.results == [1.0]
    assert len(bench.shown) < 200
