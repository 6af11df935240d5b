"""Work stays on one thread, large products are shared, and numbers of threads come back whatever happens."""

import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import hardmax as hm
import hardmax.attention.search.blocks
import hardmax.dynamics.execution
import hardmax.forecasting.forecaster
import hardmax.text.classifier
import hardmax.threads
from hardmax.app.jobs import JobPool
from hardmax.attention.layer import AbstractLayer
from hardmax.meanfield.rows import rows_mean
from hardmax.reproduce.tour import Stop, take_tour
from hardmax.threads import allowed_threads, in_order, one_thread

_LARGE = 10.0


class _SeenError(Exception):
    """Ends the work at the place where threads are counted."""


def _threads() -> tuple[int, int]:
    """How many threads torch may use here, and the BLAS libraries anywhere."""
    return torch.get_num_threads(), max(pool["num_threads"] for pool in _blas())


def _blas() -> list[dict]:
    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def several_threads():
    """Three threads for torch and two for BLAS, which every test must leave so, in new threads too."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with threadpool_limits(2, user_api="blas"):
        yield
        assert _threads() == (3, 2)
        assert _in_a_new_thread(_threads) == (3, 2)
    torch.set_num_threads(before)


def _in_a_new_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


class _Watching(AbstractLayer):
    """A layer that moves nothing and notes how many threads there are."""

    def __init__(self):
        self.seen = []

    def step(self, tokens, weights=None):
        self.seen.append(_threads())
        return tokens


def _probe(monkeypatch, module, name):
    """Replace a function by one that notes the threads and fails."""
    seen = []

    def note(*arguments, **options):
        seen.append(_threads())
        raise _SeenError

    monkeypatch.setattr(module, name, note)
    return seen


_SERIES = np.sin(np.arange(200.0))[:, None]


@pytest.mark.parametrize(
    ("module", "name", "work"),
    [
        (hardmax.dynamics.execution, "start", lambda: hm.equilibrium(np.eye(3))),
        (hardmax.dynamics.execution, "start", lambda: hm.simulate(np.eye(3), hm.HardmaxLayer(), depth=2)),
        (hardmax.forecasting.forecaster, "fit_forecaster", lambda: hm.TimeDelayedTransformer().fit(_SERIES)),
        (hardmax.text.classifier, "fit_model", lambda: hm.LeaderClassifier().fit(["a", "b"], [0, 1])),
    ],
)
def test_verbs_and_fits_use_one_thread_and_leave_all_after_a_failure(monkeypatch, module, name, work):
    seen = _probe(monkeypatch, module, name)
    with pytest.raises(_SeenError):
        work()
    assert seen == [(1, 1)]
    assert _threads() == (3, 2)


@pytest.mark.parametrize("count", [1, 512, 20_000])
def test_layers_of_any_number_of_tokens_run_on_one_thread(count):
    layer = _Watching()
    hm.simulate(np.ones((count, 2)), layer, depth=2)
    layer(np.ones((count, 2)))
    assert layer.seen == [(1, 1)] * 3


def test_the_demo_uses_one_thread(tmp_path):
    seen = []
    take_tour(tmp_path / "demo.html", stops=[Stop("threads", lambda section: seen.append(_threads()))])
    assert seen == [(1, 1)]


def test_jobs_of_the_explorer_at_the_same_time_use_one_thread_each_and_leave_all():
    workers, seen = 4, []
    together = threading.Barrier(workers, timeout=60)
    pool = JobPool(workers)
    done = threading.Semaphore(0)

    def job(stagger):
        # All are inside at the same time, in threads that are new to torch; they leave one after the other.
        together.wait()
        seen.append(_threads())
        order[stagger].acquire(timeout=60)
        if stagger + 1 < workers:
            order[stagger + 1].release()
        hm.equilibrium(np.eye(2))
        done.release()

    order = [threading.Semaphore(1 if k == 0 else 0) for k in range(workers)]
    for k in range(workers):
        pool.submit(lambda k=k: job(k))
    for _ in range(workers):
        assert done.acquire(timeout=60)
    pool._pool.shutdown(wait=True)
    assert seen == [(1, 1)] * workers


@pytest.mark.parametrize("first_out", [0, 1])
def test_blas_is_released_by_the_last_of_several_threads(first_out):
    """Whoever leaves first must not undo, or keep for ever, what the other one needs."""
    inside, leave = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]
    after = {}

    def work(k):
        torch.get_num_threads()
        with one_thread():
            inside[k].set()
            assert leave[k].wait(60)
            assert torch.get_num_threads() == 1
        after[k] = torch.get_num_threads()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for k, thread in enumerate(threads):
        thread.start()
        assert inside[k].wait(60)
    for k in (first_out, 1 - first_out):
        # Libraries that use OpenMP (other tests may have loaded one) have a limit for each thread, this one included.
        assert max(pool["num_threads"] for pool in _blas() if pool["threading_layer"] != "openmp") == 1
        leave[k].set()
        threads[k].join()
    assert after == {0: 3, 1: 3}


def test_blocks_within_blocks_end_with_the_outermost():
    with one_thread():
        with one_thread():
            assert _threads() == (1, 1)
        assert _threads() == (1, 1)
        assert allowed_threads() == 3


def test_large_work_is_shared_by_all_threads_that_the_user_allows():
    together = threading.Barrier(3, timeout=60)

    def work(item):
        together.wait()  # passes only if three run at the same time
        return item, _threads(), allowed_threads()

    with one_thread():
        found = list(in_order(work, range(9), seconds=_LARGE))
    assert found == [(item, (1, 1), 1) for item in range(9)]


@pytest.mark.parametrize(("limit", "seconds"), [(1, _LARGE), (3, 0.01)])
def test_the_limit_of_the_user_counts_and_little_work_is_not_shared(limit, seconds):
    torch.set_num_threads(limit)
    idents = list(in_order(lambda item: threading.get_ident(), range(5), seconds=seconds))
    assert idents == [threading.get_ident()] * 5
    torch.set_num_threads(3)


def test_shared_work_sees_the_context_of_the_caller():
    with torch.no_grad(), np.errstate(divide="raise"):
        found = list(in_order(lambda item: (torch.is_grad_enabled(), np.geterr()["divide"]), range(4), seconds=_LARGE))
    assert found == [(False, "raise")] * 4


def test_an_error_in_shared_work_reaches_the_caller():
    def work(item):
        if item == 7:
            raise _SeenError
        return item

    found = in_order(work, range(100), seconds=_LARGE)
    assert [next(found) for _ in range(7)] == list(range(7))
    with pytest.raises(_SeenError):
        next(found)


@pytest.mark.parametrize(("n", "d", "shared"), [(8_000, 64, True), (20_000, 2, False), (500, 3, False)])
def test_large_dense_searches_are_shared_and_planar_ones_are_not(monkeypatch, n, d, shared):
    seen = []

    def note(work, items, *, seconds):
        def watched(item):
            seen.append(threading.current_thread().name.startswith("hardmax-block"))
            return work(item)

        return in_order(watched, items, seconds=seconds)

    monkeypatch.setattr(hardmax.attention.search.blocks, "in_order", note)
    hm.equilibrium(np.random.default_rng(0).normal(size=(n, d)))
    assert any(seen) == shared


@pytest.mark.parametrize("d", [8, 64])
def test_answers_do_not_depend_on_the_number_of_threads(monkeypatch, d):
    monkeypatch.setattr(hardmax.threads, "_WORTH_SHARING", 0.0)
    tokens = np.random.default_rng(1).normal(size=(2_500, d))
    tokens[::7] = np.round(tokens[::7])
    keys = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    works = [
        lambda: hm.equilibrium(tokens).follows,
        lambda: hm.SoftmaxLayer(0.5, beta=2.0)(tokens),
        lambda: rows_mean(keys * 3, keys, np.ones(len(keys))),
    ]
    for work in works:
        shared = work()
        torch.set_num_threads(1)
        with threadpool_limits(1, user_api="blas"):
            alone = work()
        torch.set_num_threads(3)
        np.testing.assert_array_equal(shared, alone)


def test_gradients_flow_through_shared_softmax_rows(monkeypatch):
    monkeypatch.setattr(hardmax.threads, "_WORTH_SHARING", 0.0)
    tokens = torch.randn(1_500, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gradients = []
    for threads in (3, 1):
        torch.set_num_threads(threads)
        leaf = tokens.clone().requires_grad_()
        hm.SoftmaxLayer(0.5, beta=1.0)(leaf).square().sum().backward()
        gradients.append(leaf.grad)
    torch.set_num_threads(3)
    torch.testing.assert_close(*gradients)
