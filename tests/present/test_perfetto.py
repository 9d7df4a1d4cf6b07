"""Traces for Perfetto, read back with Perfetto's own schema."""

from collections import defaultdict

import pytest

from nsw.analysis.timeline_tracks import select_trace_rows, timeline_tracks
from nsw.present.perfetto import PerfettoTrace

HUGE = 2**53 + 1  # ns, which no float holds


def operation(start, duration, name="k", **more):
    return {"report": "r", "rank": 0, "pid": 7, "device": 1, "context": 1, "stream": 7, "kind": "kernel", "name": name,
            "short_name": name, "start_ns": start, "duration_ns": duration} | more  # fmt: skip


def call(start, duration, name="cudaLaunchKernel", **more):
    return {"report": "r", "rank": 0, "pid": 7, "device": None, "tid": 70, "name": name, "start_ns": start,
            "duration_ns": duration, "correlation": 3, "return_value": 0} | more  # fmt: skip


def nvtx(start, duration, name="step", **more):
    return {"report": "r", "rank": 0, "pid": 7, "device": None, "tid": 70, "domain": None, "name": name,
            "start_ns": start, "duration_ns": duration} | more  # fmt: skip


def written(tracks):
    trace = PerfettoTrace()
    trace.add(tracks)
    return trace


@pytest.fixture(scope="session")
def schema():
    return pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="Perfetto's schema is a library for development"
    )


def unknown(message):
    """Fields that the schema does not have, at any depth."""
    from google.protobuf.message import Message
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            found += unknown(value) if isinstance(value, Message) else sum(map(unknown, value))
    return found


def slices_of(schema, data):
    """(process, thread, name, start, end, kind, details) of each slice, as a reader of the schema understands them."""
    trace = schema.Trace.FromString(data)
    assert not unknown(trace)
    assert all(packet.trusted_packet_sequence_id == 1 for packet in trace.packet)
    names, kinds, keys, texts = {}, {}, {}, {}
    processes, threads, open_ = {}, {}, defaultdict(list)
    found = []
    for packet in trace.packet:
        for known, entries in (
            (names, packet.interned_data.event_names), (kinds, packet.interned_data.event_categories),
            (keys, packet.interned_data.debug_annotation_names),
        ):  # fmt: skip
            known.update({entry.iid: entry.name for entry in entries})
        texts.update({entry.iid: entry.str.decode() for entry in packet.interned_data.debug_annotation_string_values})
        described = packet.track_descriptor
        if described.HasField("process"):
            processes[described.process.pid] = described.process.process_name
        elif described.HasField("thread"):
            threads[described.uuid] = (processes[described.thread.pid], described.thread.thread_name)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == schema.TrackEvent.TYPE_SLICE_END:
            found[open_[event.track_uuid].pop()][4] = packet.timestamp
            continue
        details = {
            keys[one.name_iid]: texts[one.string_value_iid] if one.string_value_iid else one.int_value
            for one in event.debug_annotations
        }
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            open_[event.track_uuid].append(len(found))
        (kind,) = event.category_iids
        found.append([*threads[event.track_uuid], names[event.name_iid], packet.timestamp, None, kinds[kind], details])
    assert not any(open_.values())
    return [tuple(one) for one in found]


def test_every_event_comes_back_to_the_nanosecond(schema):
    tables = {
        "gpu_trace": [operation(HUGE, 3, grid_x=4, grid_y=1, grid_z=1, block_x=64, block_y=2, block_z=1),
                      operation(HUGE + 10, 0, "memcpy", kind="memcpy", bytes=2**40)],
        "api_trace": [call(HUGE - 9, 5, return_value=-2)],
        "nvtx_trace": [nvtx(HUGE - 20, 40), nvtx(HUGE - 10, 12, "forward"), nvtx(HUGE, None, "mark")],
    }  # fmt: skip
    trace = written(timeline_tracks("gpus-1", tables))
    data = b"".join(trace.packets)
    assert (trace.events, trace.size) == (6, len(data))
    home, gpu = "gpus-1, rank 0", "GPU 1 context 1 stream 7"
    assert slices_of(schema, data) == [
        (home, "NVTX, thread 70", "step", HUGE - 20, HUGE + 20, "nvtx", {}),
        (home, "NVTX, thread 70", "forward", HUGE - 10, HUGE + 2, "nvtx", {}),
        (home, "NVTX, thread 70", "mark", HUGE, None, "nvtx", {}),
        (home, "CUDA API, thread 70", "cudaLaunchKernel", HUGE - 9, HUGE - 4, "api",
         {"correlation": 3, "return_value": -2}),
        (home, gpu, "k", HUGE, HUGE + 3, "kernel", {"grid": "4 x 1 x 1", "block": "64 x 2 x 1"}),
        (home, gpu, "memcpy", HUGE + 10, HUGE + 10, "memcpy", {"bytes": 2**40}),
    ]  # fmt: skip


def test_an_arrow_leads_from_a_call_to_what_it_launched_and_not_to_other_processes(schema):
    tables = {
        "api_trace": [call(0, 5), call(0, 5, pid=8, rank=1)],
        "gpu_trace": [operation(9, 1, correlation=3), operation(9, 1, pid=8, rank=1, correlation=3)],
    }
    events = [
        packet.track_event
        for packet in schema.Trace.FromString(b"".join(written(timeline_tracks("c", tables)).packets)).packet
        if packet.track_event.type == schema.TrackEvent.TYPE_SLICE_BEGIN
    ]
    begun = [flow for event in events for flow in event.flow_ids]
    ended = [flow for event in events for flow in event.terminating_flow_ids]
    assert sorted(begun) == sorted(ended)
    assert len(set(begun)) == 2


def test_operations_of_a_stream_that_overlap_are_on_tracks_of_their_own(schema):
    rows = [operation(0, 10, "a"), operation(5, 10, "b"), operation(6, 2, "c"), operation(10, 1, "d")]
    data = b"".join(written(timeline_tracks("c", {"gpu_trace": rows})).packets)
    where = {name: (thread, start, end) for _, thread, name, start, end, _, _ in slices_of(schema, data)}
    first = "GPU 1 context 1 stream 7"
    assert where == {
        "a": (first, 0, 10), "c": (first, 6, 8), "d": (first, 10, 11), "b": (f"{first} (2)", 5, 15),
    }  # fmt: skip


def test_a_hostile_name_is_text(schema):
    name = "k\x00\ud800<script>" + "x" * 1000
    data = b"".join(written(timeline_tracks("c", {"gpu_trace": [operation(0, 1, name)]})).packets)
    assert [part[2] for part in slices_of(schema, data)] == [name.replace("\ud800", "?")]


def test_steps_of_several_reports_begin_together():
    def report(name, rank, offset):
        of = {"report": name, "rank": rank}
        return [operation(offset + at * 100, 50, **of) for at in range(3)], [
            {**of, "iteration": at, "start_ns": offset + at * 100, "duration_ns": 100} for at in range(3)
        ]

    (first, steps), (second, more) = report("a", 0, 0), report("b", 1, 1_000)
    tables = {"gpu_trace": first + second, "iteration_trace": steps + more}
    rows = select_trace_rows(tables, None, (1, 1))["gpu_trace"]
    assert [(row["rank"], row["start_ns"]) for row in rows] == [(0, 1_100), (1, 1_100)]
    assert [row["rank"] for row in select_trace_rows(tables, [1], None)["gpu_trace"]] == [1, 1, 1]
