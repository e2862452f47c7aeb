# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_torch_backend.py do: each function is a test, called on every rank."""

from __future__ import annotations

import concurrent.futures
import re
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
from torch import nn

import towpath.torch  # noqa: F401: registers the backend
from towpath.torch import sum_in_place

REDUCED = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.complex64, torch.complex32, torch.float8_e4m3fn,
)  # fmt: skip


def raises(function, *words):
    """The sentence of what the function raises, which must have the words in it."""
    try:
        function()
    except Exception as error:
        said = str(error)
        assert all(word in said for word in words), said
        return said
    raise AssertionError("nothing was raised")


def reductions_of_every_type(rank, ranks):
    for kind in REDUCED:
        for size in (0, 1, 7, 5000):
            values = torch.full((size,), rank + 1).to(kind)
            if kind.is_floating_point and kind.itemsize == 1:
                work = dist.group.WORLD.allreduce([values])  # torch's own check refuses fp8
                work.wait()
            else:
                dist.all_reduce(values)
            expected = torch.full((size,), ranks * (ranks + 1) // 2).to(kind)
            assert torch.equal(values.to(torch.complex64), expected.to(torch.complex64)), kind


def sums_in_place(rank, ranks):
    total = ranks * (ranks + 1) // 2
    add_up = sum_in_place(dist.group.WORLD)
    for kind in REDUCED:
        for size in (0, 1, 7, 5000):
            values = torch.full((size,), rank + 1).to(kind)
            assert add_up(values) is None
            expected = torch.full((size,), total).to(kind)
            assert torch.equal(values.to(torch.complex64), expected.to(torch.complex64)), kind
    whole = torch.zeros(8, 6)
    view = whole.t()[1:5, ::2]
    view += rank + 1
    add_up(view)
    assert (view == total).all() and whole.sum().item() == total * view.numel()
    before, after = torch.full((3000,), float(rank)), torch.full((9,), float(rank + 1))
    work = dist.all_reduce(before, async_op=True)
    add_up(after)
    work.wait()
    assert (after == total).all() and (before == total - ranks).all()
    other = dist.new_group(backend="gloo")
    raises(lambda: sum_in_place(other)(after), "needs a group of the backend towpath, but got gloo")
    dist.destroy_process_group(other)
    raises(lambda: add_up(torch.ones(2, device="meta")), "towpath moves CPU tensors")
    group = dist.new_group()
    raises(lambda: sum_in_place(group)(torch.ones(3 + rank)), "rank")


def reduced_by_group(value, operation, kind):
    """One element, past torch.distributed, which refuses some types itself."""
    tensor = torch.tensor([value], dtype=torch.float32).to(kind)
    options = dist.AllreduceOptions()
    options.reduceOp = operation
    dist.group.WORLD.allreduce([tensor], options).wait()
    return tensor.to(torch.complex64).item()


def reductions_of_every_operation(rank, ranks):
    def reduced(value, operation, kind=torch.int64):
        tensor = torch.tensor([value] * 3, dtype=kind)
        dist.all_reduce(tensor, op=operation)
        return tensor[0].item()

    numbers = range(1, ranks + 1)
    assert reduced(rank + 1, dist.ReduceOp.MIN) == 1
    assert reduced(rank + 1, dist.ReduceOp.MAX) == ranks
    assert reduced(rank + 1, dist.ReduceOp.PRODUCT) == torch.tensor(numbers).prod().item()
    assert reduced(float(rank), dist.ReduceOp.AVG, torch.float32) == (ranks - 1) / 2
    assert reduced(1 << rank, dist.ReduceOp.BOR) == (1 << ranks) - 1
    assert reduced(~(1 << rank), dist.ReduceOp.BAND) == ~((1 << ranks) - 1)
    assert reduced(1, dist.ReduceOp.BXOR) == ranks % 2
    # Wraps around, as torch's own products do.
    assert reduced(65535, dist.ReduceOp.PRODUCT, torch.uint16) == 65535**ranks % 65536
    assert reduced(rank == 0, dist.ReduceOp.SUM, torch.bool) is True
    assert reduced(rank == 0, dist.ReduceOp.PRODUCT, torch.bool) is False
    scaled = dist._make_nccl_premul_sum(0.5)
    assert reduced(float(rank + 1), scaled, torch.float32) == 0.5 * sum(numbers)
    raises(lambda: reduced(1.0, dist.ReduceOp.BOR, torch.float32), "cannot reduce Float by BOR")
    raises(lambda: reduced(True, dist.ReduceOp.AVG, torch.bool), "cannot reduce Bool by AVG")
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32):
        if kind == torch.float8_e5m2 and ranks > 4:
            continue  # it has no 18, the sum of 8 ranks
        assert reduced_by_group(rank + 1, scaled, kind) == 0.5 * sum(numbers), kind


def every_method(rank, ranks):
    own = torch.arange(6.0) + 100 * rank
    of_all = [torch.arange(6.0) + 100 * other for other in range(ranks)]
    listed = [torch.empty(6) for _ in range(ranks)]
    dist.all_gather(listed, own)
    assert torch.equal(torch.stack(listed), torch.stack(of_all))
    joined = torch.empty(6 * ranks)
    dist.all_gather_into_tensor(joined, own)
    assert torch.equal(joined, torch.cat(of_all))

    root = ranks - 1
    dist.gather(own, listed if rank == root else None, dst=root)
    got = torch.empty(6)
    dist.scatter(got, of_all if rank == 0 else None, src=0)
    assert torch.equal(got, own)
    sent = own.clone()
    dist.broadcast(sent, src=root)
    assert torch.equal(sent, of_all[root])
    dist.reduce(sent := own.clone(), dst=root)
    assert torch.equal(sent, sum(of_all) if rank == root else own)

    part = torch.empty(6)
    dist.reduce_scatter(part, [of_all[other] * (rank + 1) for other in range(ranks)])
    assert torch.equal(part, own * sum(range(1, ranks + 1)))
    dist.reduce_scatter_tensor(part, torch.cat(of_all))
    assert torch.equal(part, own * ranks)

    dist.all_to_all(listed, [own + other for other in range(ranks)])
    assert torch.equal(torch.stack(listed), torch.stack(of_all) + rank)
    counts = [other + 1 for other in range(ranks)]
    split = torch.empty(ranks * (rank + 1), 2)
    dist.all_to_all_single(
        split, torch.full((sum(counts), 2), float(rank)), [rank + 1] * ranks, counts
    )
    assert torch.equal(split[:, 0], torch.arange(float(ranks)).repeat_interleave(rank + 1))
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank})
    assert [each["rank"] for each in objects] == list(range(ranks))


def parts_of_every_size(rank, ranks):
    """Within a line, within a slot, in blocks, and where the input lies in the output."""
    for count in (1, 1500, 70_000):
        of_all = [torch.arange(float(count)) + 1000 * other for other in range(ranks)]
        joined = torch.zeros(ranks * count)
        joined[rank * count : (rank + 1) * count] = of_all[rank]
        dist.all_gather_into_tensor(joined, joined[rank * count : (rank + 1) * count])
        assert torch.equal(joined, torch.cat(of_all)), count
        got = torch.empty(ranks * count)
        dist.all_to_all_single(got, torch.cat([of_all[rank] + other for other in range(ranks)]))
        assert torch.equal(got, torch.cat(of_all) + rank), count
        dist.barrier()


def parts_that_differ(rank, ranks):
    """The forms whose lists have a size for each rank."""
    sizes = [3 * (other + 1) for other in range(ranks)]
    of_rank = [torch.full((size,), float(other)) for other, size in enumerate(sizes)]

    def is_right(listed):
        return all(map(torch.equal, listed, of_rank))

    listed = [torch.empty(size) for size in sizes]
    dist.all_gather(listed, of_rank[rank])
    assert is_right(listed)
    listed = [torch.empty(size) for size in sizes]
    dist.gather(of_rank[rank], listed if rank == 1 else None, dst=1)
    assert rank != 1 or is_right(listed)
    part = torch.empty(sizes[rank])
    dist.scatter(part, of_rank if rank == 1 else None, src=1)
    assert torch.equal(part, of_rank[rank])
    dist.reduce_scatter(part, of_rank)
    assert torch.equal(part, of_rank[rank] * ranks)
    sent = [torch.full((rank + other + 1,), float(rank)) for other in range(ranks)]
    listed = [torch.empty(rank + other + 1) for other in range(ranks)]
    dist.all_to_all(listed, sent)
    assert all((got == other).all() for other, got in enumerate(listed))


def tensors_that_are_not_contiguous(rank, ranks):
    whole = torch.zeros(8, 6)
    view = whole.t()[1:5, ::2]
    view += rank + 1
    dist.all_reduce(view)
    total = ranks * (ranks + 1) / 2
    assert torch.equal(view, torch.full_like(view, total))
    assert whole.sum().item() == total * view.numel()


def views_that_are_conjugated_or_negated(rank, ranks):
    """In place only: to torch.distributed torch gives a copy, which changes nothing."""
    total = ranks * (ranks + 1) / 2
    add_up = sum_in_place(dist.group.WORLD)
    negated = torch.full((5,), complex(0, rank + 1)).conj().imag
    assert negated.is_neg()
    add_up(negated)
    assert (negated == -total).all(), negated
    odd = sum(each + 1 for each in range(ranks) if each % 2)
    whole = torch.full((5,), complex(rank + 1, 2 * (rank + 1)))
    values = whole.conj() if rank % 2 else whole
    add_up(values)
    assert (values == complex(total, 2 * (total - 2 * odd))).all(), values


def coalesced_calls(rank, ranks):
    tensors = [torch.full((size,), float(rank)) for size in (1, 3000, 0, 20)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all((tensor == ranks * (ranks - 1) / 2).all() for tensor in tensors)
    got = torch.empty(10)
    operations = [
        dist.P2POp(dist.isend, torch.full((10,), float(rank)), (rank + 1) % ranks),
        dist.P2POp(dist.irecv, got, (rank - 1) % ranks),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert (got == (rank - 1) % ranks).all()


def messages_in_any_order(rank, ranks):
    peers = [peer for peer in range(ranks) if peer != rank]
    sends = [
        dist.isend(torch.full((100_000,), 10 * rank + tag), peer, tag=tag)
        for peer in peers
        for tag in (1, 2)
    ]
    for tag in (2, 1):
        for peer in reversed(peers):
            got = torch.empty(100_000, dtype=torch.int64)
            dist.recv(got, peer, tag=tag)
            assert (got == 10 * peer + tag).all()
    for send in sends:
        send.wait()
    for peer in peers:
        sends.append(dist.isend(torch.tensor([rank]), peer, tag=3))
    got = torch.empty(1, dtype=torch.int64)
    sources = {dist.recv(got, tag=3) for _ in peers}
    assert sources == set(peers)


def groups_in_any_order(rank, ranks):
    first, second = dist.new_group(), dist.new_group([0, 1])
    pair = torch.ones(200_000)
    everyone = torch.ones(200_000)
    calls = [lambda: dist.all_reduce(everyone, group=first, async_op=True)]
    if rank < 2:
        calls.append(lambda: dist.all_reduce(pair, group=second, async_op=True))
    works = [call() for call in (calls if rank % 2 else reversed(calls))]
    for work in works:
        work.wait()
    assert (everyone == ranks).all()
    assert rank > 1 or (pair == 2).all()


def a_group_that_is_split(rank, ranks):
    if rank < 2:
        pair = dist.group.WORLD.split_group([0, 1])
        pair.allreduce([values := torch.ones(10)]).wait()
        assert (values == 2).all()


def sleeps_of_other_threads():
    """How often the threads of this process, but the one that asks, have gone to sleep."""
    own = str(threading.get_native_id())
    status = [
        (task / "status").read_text()
        for task in Path("/proc/self/task").iterdir()
        if task.name != own
    ]
    return sum(int(re.search(r"^voluntary.*?(\d+)", text, re.MULTILINE)[1]) for text in status)


def calls_that_wake_no_other_thread(rank, ranks):
    calls = 400
    group = dist.new_group()
    dist.barrier(group=group)
    before = sleeps_of_other_threads()
    for _ in range(calls):
        dist.all_reduce(torch.ones(2), group=group)
    assert sleeps_of_other_threads() - before < calls // 4


def symmetric_memory(rank, ranks):
    tensor = symm_mem.empty(1000, dtype=torch.float32).fill_(rank)
    assert symm_mem.is_symm_mem_tensor(tensor)
    assert symm_mem.get_backend("cpu") == "TOWPATH"
    handle = symm_mem.rendezvous(tensor, dist.group.WORLD)
    assert symm_mem.rendezvous(tensor, dist.group.WORLD).buffer_ptrs == handle.buffer_ptrs
    assert (handle.rank, handle.world_size) == (rank, ranks)
    # What was there before is kept, and each rank sees the others'.
    for peer in range(ranks):
        assert (handle.get_buffer(peer, (1000,), torch.float32) == peer).all()
    handle.barrier()
    following = (rank + 1) % ranks
    handle.get_buffer(following, (1000,), torch.float32).fill_(100 + rank)
    handle.put_signal(following, channel=3)
    handle.wait_signal((rank - 1) % ranks, channel=3)
    assert (tensor == 100 + (rank - 1) % ranks).all()
    handle.barrier()
    assert (handle.get_signal_pad(rank, dtype=torch.uint32).to(torch.int64) == 0).all()
    assert (handle.get_remote_tensor(following, (10,), torch.float32) == 100 + rank).all()
    dist.barrier()
    for turn in range(300):
        handle.barrier(channel=turn % 2)
    values = tensor.clone()
    dist.all_reduce(tensor)  # a tensor like any other
    dist.all_reduce(values)
    assert torch.equal(tensor, values)


def symmetric_memory_that_is_refused(rank, ranks):
    tensor = symm_mem.empty(10 + 10_000 * rank)
    raises(lambda: symm_mem.rendezvous(tensor, dist.group.WORLD), "bytes of heap, but rank 0")
    handle = symm_mem.rendezvous(tensor := symm_mem.empty(10), dist.group.WORLD)
    raises(lambda: handle.put_signal(ranks), f"rank {ranks} is outside the range 0 to {ranks - 1}")
    raises(lambda: handle.barrier(channel=1 << 20), "is outside the range 0 to", "signal pad")
    raises(lambda: symm_mem.rendezvous(tensor, dist.new_group()), "is shared by group")
    if rank == 0:
        said = raises(lambda: handle.wait_signal(1, timeout_ms=200), "a signal of rank 1")
        assert "rank 0" in said and "0.2 s" in said, said
    dist.barrier()  # until then all hold the memory


def futures(rank, ranks):
    work = dist.all_reduce(tensor := torch.ones(5), async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    assert torch.equal(doubled.wait(), torch.full((5,), 2.0 * ranks))
    assert torch.equal(tensor, torch.full((5,), float(ranks)))


def futures_that_are_taken_while_calls_end(rank, ranks):
    with concurrent.futures.ThreadPoolExecutor(1) as others:
        for _ in range(2000):
            work = dist.all_reduce(torch.ones(1), async_op=True)
            done = others.submit(work.wait)
            assert work.get_future().wait()[0] == ranks
            assert done.result()


def data_parallel(rank, ranks):
    torch.manual_seed(1)
    plain = nn.Sequential(nn.Linear(40, 300), nn.ReLU(), nn.Linear(300, 1))
    wrapped = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(40, 300), nn.ReLU(), nn.Linear(300, 1)), bucket_cap_mb=0.01
    )
    wrapped.module.load_state_dict(plain.state_dict())
    batch = torch.randn(4 * ranks, 40)
    plain(batch).square().mean().backward()
    wrapped(batch[4 * rank : 4 * rank + 4]).square().mean().backward()
    for ours, expected in zip(wrapped.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, expected.grad)


def fully_sharded(rank, ranks):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(1)
    plain = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 16))
    torch.manual_seed(1)
    sharded = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 16))
    for layer in sharded:
        fully_shard(layer)
    fully_shard(sharded)
    batch = torch.randn(4 * ranks, 16)
    plain(batch).square().mean().backward()
    sharded(batch[4 * rank : 4 * rank + 4]).square().mean().backward()
    for ours, expected in zip(sharded.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.full_tensor(), expected.grad)


def tensors_on_a_mesh(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("replicas", "shards"))
    whole = torch.arange(64.0).reshape(8, 8)
    sharded = distribute_tensor(whole, mesh, [Replicate(), Shard(0)])
    product = sharded @ sharded.redistribute(mesh, [Replicate(), Shard(1)])
    assert torch.equal(product.full_tensor(), whole @ whole)
    assert mesh["shards"].size() == ranks // 2


def a_deadline_names_the_straggler(rank, ranks):
    group = dist.new_group(timeout=timedelta(seconds=1))
    dist.all_reduce(torch.ones(4), group=group)
    if rank == 1:
        time.sleep(3)

        def too_late():
            dist.all_reduce(torch.ones(2), group=group)  # what the others sent is there
            dist.all_reduce(torch.ones(2), group=group)

        raises(too_late, "rank")
        return
    said = raises(lambda: dist.all_reduce(torch.ones(2), group=group), "all_reduce")
    if "ended by a timeout" in said:  # otherwise the other rank's deadline came first
        last = "rank 1: after all_reduce number 1 of 16 bytes"
        assert last in said, said
        assert said.index(last) < said.index("number 2 of 8", said.index("straggler")), said


def a_callback_waits_for_another_call(rank, ranks):
    """As the communication hooks of DDP do that compress gradients in two rounds."""
    values = torch.ones(1000) * (rank + 1)

    def second(first):
        more = torch.full((10,), first.value()[0][0].item())
        return dist.all_reduce(more, async_op=True).get_future().wait()[0]

    total = sum(range(1, ranks + 1))
    # All ranks make the calls of a group in one order: first these, then those of the callbacks.
    works = [dist.all_reduce(values.clone(), async_op=True) for _ in range(4)]
    futures = [work.get_future().then(second) for work in works]
    for future in futures:
        assert torch.equal(future.wait(), torch.full((10,), float(total * ranks)))


def calls_that_differ(rank, ranks):
    group = dist.new_group()
    dist.barrier()  # Otherwise the error may reach a rank that still creates the group.
    raises(lambda: dist.all_reduce(torch.ones(3 + rank), group=group), "rank")


def an_abort(rank, ranks):
    group = dist.new_group()
    work = dist.all_reduce(torch.ones(3), group=group, async_op=True) if rank == 0 else None
    if work is not None:
        group.abort()
        raises(work.wait, "rank 0 aborted the process group")
        raises(lambda: dist.barrier(group=group), "rank 0 aborted the process group")


def an_abort_during_a_wait(rank, ranks):
    group = dist.new_group()
    if rank == 0:
        timer = threading.Timer(0.2, group.abort)
        timer.start()
        raises(lambda: dist.barrier(group=group), "rank 0 aborted the process group")
        timer.join()


def an_error_of_the_group(rank, ranks):
    def error_of(group):
        backend = group._get_backend(torch.device("cpu"))
        # The only way of torch to ask a backend from Python.
        return torch._C._distributed_c10d._ProcessGroupWrapper(backend, backend).get_error()

    group = dist.new_group(timeout=timedelta(seconds=0.2))
    assert error_of(group) == torch._C._distributed_c10d.ErrorType.SUCCESS
    dist.barrier()
    if rank == 0:
        raises(lambda: dist.barrier(group=group), "timeout")
        assert error_of(group) == torch._C._distributed_c10d.ErrorType.TIMEOUT
    dist.barrier()
    if rank == 1:

        def too_late():
            dist.barrier(group=group)  # what rank 0 sent is there
            dist.barrier(group=group)

        raises(too_late, "rank 0")
        assert error_of(group) == torch._C._distributed_c10d.ErrorType.REMOTE_ERROR


def splits_that_are_wrong(rank, ranks):
    values = torch.zeros(ranks)
    splits = [-1, ranks + 1] + [0] * (ranks - 2)
    raises(lambda: dist.all_to_all_single(values.clone(), values, splits, splits), "-1 rows")


def a_timeout_is_that_of_all_coalesced_calls(rank, ranks):
    group = dist.new_group(timeout=timedelta(seconds=30))
    if rank == 0:
        with dist._coalescing_manager(group, async_ops=True) as manager:
            for _ in range(8):
                dist.all_reduce(torch.ones(4), group=group)
        began = time.monotonic()
        raises(lambda: manager.works[0].wait(timedelta(seconds=0.3)), "timed out")
        assert time.monotonic() - began < 8 * 0.3


def the_name_and_the_sequence(rank, ranks):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert dist.get_backend() == backend.name() == "towpath"
    before = backend._get_sequence_number_for_group()
    dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 1


def a_monitored_barrier(rank, ranks):
    group = dist.new_group(timeout=timedelta(seconds=60))
    group.monitored_barrier(timedelta(seconds=60), wait_all_ranks=True)
    if rank == 0:
        raises(lambda: group.monitored_barrier(timedelta(seconds=0.2)), "Rank 1 failed to pass")


def more_than_2_gib(rank, ranks):
    values = torch.full(((1 << 31) + 77,), rank + 1, dtype=torch.uint8)
    dist.all_reduce(values)
    total = ranks * (ranks + 1) // 2
    assert values.min() == values.max() == total
    got = values.fill_(rank) if rank == 0 else values
    dist.broadcast(got, src=0)
    assert got.max() == 0


TESTS = [
    reductions_of_every_type, reductions_of_every_operation, sums_in_place, every_method,
    parts_of_every_size, parts_that_differ, tensors_that_are_not_contiguous,
    views_that_are_conjugated_or_negated, coalesced_calls,
    messages_in_any_order, groups_in_any_order, a_group_that_is_split,
    calls_that_wake_no_other_thread, symmetric_memory, symmetric_memory_that_is_refused,
    futures, futures_that_are_taken_while_calls_end, an_abort_during_a_wait, an_error_of_the_group,
    splits_that_are_wrong, a_timeout_is_that_of_all_coalesced_calls, data_parallel,
    fully_sharded, tensors_on_a_mesh, calls_that_differ, an_abort,
    the_name_and_the_sequence, a_monitored_barrier, a_deadline_names_the_straggler,
    a_callback_waits_for_another_call,
]  # fmt: skip


def main() -> None:
    rank, ranks, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group("towpath", init_method=f"file://{store}", rank=rank, world_size=ranks)
    for test in [globals()[name] for name in sys.argv[4:]] or TESTS:
        test(rank, ranks)
        print(test.__name__, flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
