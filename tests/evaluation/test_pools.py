"""Pieces of work in threads and processes: order, one torch thread each, errors."""

from __future__ import annotations

import os

import pytest

from tamiz import E2EFSClassifier, Training, evaluate
from tamiz.evaluation.pools import one_torch_thread, run_parallel

#: Run in another process, which has no module of this test.
DESCRIBE = "(number, __import__('os').getpid(), __import__('torch').get_num_threads())"


def test_results_come_in_order_from_processes_with_one_thread_each():
    pytest.importorskip("torch")
    done = []
    pieces = [(DESCRIBE, {"number": i}) for i in range(4)]
    results = run_parallel(eval, pieces, 2, done.append, in_threads=False)
    assert [result[0] for result in results] == [0, 1, 2, 3]
    assert os.getpid() not in {result[1] for result in results}
    assert {result[2] for result in results} == {1}
    assert done == [1, 2, 3, 4]


def test_one_job_stays_in_this_process_and_gives_the_threads_back():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert run_parallel(eval, [(DESCRIBE, {"number": 7})], 1, in_threads=False) == [(7, os.getpid(), 1)]
        with pytest.raises(ZeroDivisionError), one_torch_thread():
            raise ZeroDivisionError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("in_threads", [True, False])
def test_an_error_in_one_piece_reaches_the_caller(in_threads):
    with pytest.raises(ZeroDivisionError, match="division"):
        run_parallel(divmod, [(1, 1), (1, 0), (2, 1)], 2, in_threads=in_threads)


def test_a_network_of_torch_is_evaluated_the_same_with_any_number_of_jobs():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(40, 4, generator=generator).numpy()
    y = (X[:, 1] > 0).astype(int)
    short = Training(warmup_steps=20, ramp_steps=100, refinement_epochs=2)
    network = E2EFSClassifier(1, network=lambda n_in, n_out: torch.nn.Linear(n_in, n_out), training=short)
    one, two = (evaluate(network, X, y, cv=2, n_random=1, n_permutations=0, n_jobs=n) for n in (1, 2))
    assert one.score == two.score
    assert one.fold_share.tolist() == two.fold_share.tolist() == [0.0, 1.0, 0.0, 0.0]
