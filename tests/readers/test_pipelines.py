"""Pipelines of simulated ranks: a planted bubble is what the ranks wait, and none is seen in other jobs."""

import json
from dataclasses import dataclass, field

import pytest

from nsw.analysis.answer.registry import answer_blocks
from nsw.analysis.pipeline import OF_PIPELINE, _pipeline_shape, find_pipeline
from nsw.analysis.summary import CampaignData, ReportRequest, summarize
from nsw.readers import read
from nsw.tables import full_rows
from tests.analysis.made import make_run

US = 1000
FORWARD, BACKWARD, OPTIMIZER = ("void forward(float*)", "void backward(float*)", "void optimizer(float*)")
SENDS, REDUCES = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096>)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
FORWARD_US, BACKWARD_US, TRANSFER_US, STEPS = 200, 400, 4, 8
KINDS = {"send": SENDS, "recv": SENDS, "all_to_allv": SENDS, "allreduce": REDUCES}


@dataclass
class Rank:
    """What the GPU of a rank does, us: kind or kernel, start, duration; and when its steps begin."""

    now: float = 100.0
    work: list = field(default_factory=list)
    steps: list = field(default_factory=list)

    def run(self, name, start, duration):
        self.work.append((name, start, duration))
        return start + duration

    def compute(self, name, duration):
        self.now = self.run(name, self.now, duration)


def meet(ranks, kind, duration):
    """A collective: it ends on all together when the last has come."""
    end = max(rank.now for rank in ranks) + duration
    for rank in ranks:
        rank.now = rank.run(kind, rank.now, end - rank.now)


def schedule(stage, stages, batches):
    """One forward, one backward: the forwards that fill the pipeline, then both in turn, then the backwards left."""
    first = min(stages - 1 - stage, batches)
    both = [(name, n + first * (name == "F")) for n in range(batches - first) for name in "FB"]
    return [*(("F", n) for n in range(first)), *both, *(("B", n) for n in range(batches - first, batches))]


def pipeline(stages, batches, *, replicas=1, slow=None, sync=True):
    """Steps of a pipeline; a replica of it is another one, whose gradients are reduced together."""
    groups = [[Rank() for _ in range(stages)] for _ in range(replicas)]
    ranks = [rank for group in groups for rank in group]
    for _ in range(STEPS):
        for rank in ranks:
            rank.steps.append(rank.now)
        for group in groups:
            step_of_pipeline(group, batches, slow)
        if replicas > 1:
            for at in range(stages):
                meet([group[at] for group in groups], "allreduce", 50)
        if sync:
            meet(ranks, "allreduce", 5)
        for rank in ranks:
            rank.compute(OPTIMIZER, 20)
    return ranks


def step_of_pipeline(group, batches, slow):
    stages, sent = len(group), {}
    left = [schedule(at, stages, batches) for at in range(stages)]
    while any(left):
        for at, rank in enumerate(group):
            while left[at]:
                what, batch = left[at][0]
                towards = 1 if what == "F" else -1
                if 0 <= at - towards < stages:
                    if (what, batch, at) not in sent:
                        break
                    arrived = max(sent[what, batch, at], rank.now + TRANSFER_US)
                    rank.now = rank.run("recv", rank.now, arrived - rank.now)
                longer = 1.5 if at == slow else 1.0
                rank.compute(*((FORWARD, longer * FORWARD_US) if what == "F" else (BACKWARD, longer * BACKWARD_US)))
                if 0 <= at + towards < stages:
                    sent[what, batch, at + towards] = rank.run("send", rank.now, TRANSFER_US)
                del left[at][0]


def data_parallel(count):
    ranks = [Rank() for _ in range(count)]
    for step in range(STEPS):
        for at, rank in enumerate(ranks):
            rank.steps.append(rank.now)
            rank.compute(FORWARD, 500 + 200 * ((at + step) % count))
            rank.compute(BACKWARD, 500)
        meet(ranks, "allreduce", 100)
    return ranks


def mixture(count):
    """Experts: two all-to-alls a layer, of which ranks wait for the one with most tokens."""
    ranks = [Rank() for _ in range(count)]
    for step in range(STEPS):
        for rank in ranks:
            rank.steps.append(rank.now)
        for layer in range(4):
            for at, rank in enumerate(ranks):
                rank.compute(FORWARD, 100)
                rank.compute(BACKWARD, 100 + 300 * ((at + layer + step) % count == 0))
            meet(ranks, "all_to_allv", 30)
        meet(ranks, "allreduce", 20)
    return ranks


def kineto(path, number, rank, count):
    """A trace of PyTorch's profiler, which tells what each of NCCL's kernels is for."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1, "ts": start,
               "dur": end - start} for n, (start, end) in enumerate(spans(rank))]  # fmt: skip
    for key, (name, start, duration) in enumerate(rank.work):
        args = {"device": number % 8, "stream": 7 + 10 * (name in KINDS), "correlation": key}
        if name in KINDS:
            args |= {"Collective name": name, "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
                     "Group size": count, "dtype": "Float"}  # fmt: skip
        kernel = {"ph": "X", "cat": "kernel", "name": KINDS.get(name, name), "pid": number % 8, "tid": 7}
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start - 3}
        events += [kernel | {"ts": start, "dur": duration, "args": args},
                   launch | {"dur": 2, "args": {"correlation": key}}]  # fmt: skip
    path.write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": number}, "traceEvents": events}))
    return path


def spans(rank):
    """Begin and end of each step on the host, which waits for the GPU at its end."""
    ends = [*rank.steps[1:], rank.now]
    return [(begin - 5, end - 6) for begin, end in zip(rank.steps, ends, strict=True)]


def nsys(database, rank, count, *, ranges):
    """An nsys export, with NCCL's ranges where they are wanted: an all-to-all is a send and a receive for each rank."""
    for n, (begin, end) in enumerate(spans(rank)):
        database.range(round(begin * US), round(end * US), f"step {n}")
    for key, (name, start, duration) in enumerate(rank.work, 1):
        begin = round((start - 3) * US)
        database.call(begin, 2 * US, correlationId=key)
        database.kernel(round(start * US), round(duration * US), KINDS.get(name, name), correlationId=key)
        each = {"send": ["ncclSend"], "recv": ["ncclRecv"], "all_to_allv": ["ncclSend", "ncclRecv"] * count}
        for text in each.get(name, ()) if ranges else ():
            database.range(begin, begin + 1, text)
    return database.done()


@pytest.fixture
def tables_of(tmp_path, nsys_database):
    """The tables of ranks by their reports: of PyTorch, of nsys with NCCL's ranges, or of nsys without."""

    def make(ranks, form):
        tables = {}
        for number, rank in enumerate(ranks):
            if form == "PyTorch":
                path = kineto(tmp_path / f"rank{number}.json", number, rank, len(ranks))
            else:
                path = nsys(nsys_database(), rank, len(ranks), ranges=form == "nsys, ranges")
            for name, rows in read(path).tables.items():
                origin = {"run": "r", "report": path.name, "rank": number}
                tables.setdefault(name, []).extend(row | origin for row in full_rows(name, rows))
        return {name: tables.get(name, []) for name in (*tables, *OF_PIPELINE)}

    return make


FORMS = ("PyTorch", "nsys, ranges", "nsys")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("stages", "batches", "more"),
    [(2, 4, {}), (4, 8, {}), (4, 4, {"sync": False}), (6, 12, {}), (4, 8, {"replicas": 2})],
)
def test_a_planted_bubble_is_what_the_ranks_wait(tables_of, form, stages, batches, more):
    found = find_pipeline(tables_of(pipeline(stages, batches, **more), form))
    if stages == 2 and form == "nsys":  # an all-to-all of two ranks looks alike
        assert found is None
        return
    assert (found.stages, found.micro_batches, found.chunks) == (stages, batches, 1)
    assert found.bubble_pct() == pytest.approx(100 * (stages - 1) / (batches + stages - 1))
    assert found.waiting_pct == pytest.approx(found.bubble_pct(), abs=2.0)
    assert not found.is_uneven


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ranks", [data_parallel(4), mixture(4), mixture(2)], ids=["data parallel", "experts", "two"])
def test_other_jobs_are_no_pipeline(tables_of, form, ranks):
    assert find_pipeline(tables_of(ranks, form)) is None


@pytest.mark.parametrize(
    ("counts", "is_known", "shape"),
    [([12, 16, 16, 12], True, (4, 2, 2)), ([12, 16, 16, 12], False, None),  # interleaved; all-to-alls beside sends
     ([8, 16, 16, 8] * 2, False, (4, 4, 1)), ([8] * 4, True, None),  # two replicas; a ring
     ([2, 4, 4, 2], False, None), ([8, 16], False, (4, 4, 1)), ([9, 16, 11, 8], True, None)],  # halos; two stages of four
)  # fmt: skip
def test_the_shape_follows_from_how_often_ranks_send_and_receive(counts, is_known, shape):
    assert _pipeline_shape(counts, is_known=is_known) == shape


def test_ranks_without_a_report_make_no_pipeline(tables_of):
    tables = tables_of(pipeline(4, 8)[:2], "PyTorch")
    assert find_pipeline(tables | {"ranks": [{"run": "r", "rank": rank} for rank in range(4)]}) is None


@pytest.mark.parametrize(
    ("slow", "text", "advice"),
    [(None, "rank 1 least, 27 %; 4 stages and 8 micro-batches take 27 % to fill and drain.", True),
     (2, "rank 2 least, 17 %; 4 stages and 8 micro-batches take 27 % to fill and drain: stages are uneven", False)],
)  # fmt: skip
def test_an_answer_says_it_and_blames_no_rank_for_coming_last(tables_of, slow, text, advice):
    data = CampaignData("c", "s", None, [make_run("r")], tables_of(pipeline(4, 8, slow=slow), "nsys"))
    summary = summarize(data, ReportRequest())
    (finding,) = [finding for finding in summary.findings if finding.cause == "pipeline-bubble"]
    assert text in finding.text
    assert ("Twice the micro-batches would leave 16 %." in finding.text) is advice
    assert not {"exposed-communication", "no-backward-overlap"} & {finding.cause for finding in summary.findings}
    (note,) = [block for block in answer_blocks(summary) if block.name == "pipeline"]
    assert text.rstrip(".") in note.text
    assert not summary.cases[0].stragglers
