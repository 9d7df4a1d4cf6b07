"""oneDNN's lines: of a real PyTorch (tests/fixtures/onednn), of older versions, amid other output, torn."""

import re
from collections import Counter
from pathlib import Path

import pytest

from nsw.readers import read

LOG = Path(__file__).parents[1] / "fixtures" / "onednn" / "convolution.txt"
# in the shapes that their documentation shows
MKLDNN_0 = """\
mkldnn_verbose,info,Intel MKL-DNN v0.21.1 (commit 7d2fd500bc78936d1d648ca713b901012f470dbc)
mkldnn_verbose,info,Detected ISA is Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions
mkldnn_verbose,create,reorder,jit:uni,undef,in:f32_oihw out:f32_Ohwi16o,num:1,64x3x11x11,0.25
mkldnn_verbose,exec,reorder,jit:uni,undef,in:f32_oihw out:f32_Ohwi16o,num:1,64x3x11x11,0.5
mkldnn_verbose,exec,convolution,jit:avx512_common,forward_training,fsrc:nchw fwei:Ohwi16o fbia:x fdst:nChw16c,alg:convolution_direct,mb64_ic3oc64,15.5
"""
DNNL_1_1 = """\
dnnl_verbose,info,DNNL v1.1.1 (commit cb2cc7ac17ff4e2ef50805c7048d33256d82be4d)
dnnl_verbose,exec,cpu,pooling,jit:avx,forward_inference,src_f32::blocked:aBcd8b:f0 dst_f32::blocked:aBcd8b:f0,alg:pooling_max,mb1ic256,0.25
"""
DNNL_2 = """\
dnnl_verbose,info,oneDNN v2.2.0 (commit 7489a2ea4c14c94f5bbe7d5fc774f722444cdd3f)
dnnl_verbose,info,cpu,runtime:OpenMP
dnnl_verbose,info,cpu,isa:Intel AVX2
dnnl_verbose,info,prim_template:timestamp,operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time
dnnl_verbose,1647000000.25,exec,gpu:0,matmul,jit:gemm:any,undef,src_f32::blocked:ab:f0 wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,attr-scratchpad:user ,,4x8:8x2,0.75
dnnl_verbose,1647000001.25,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:abcd:f0 dst_f32:p:blocked:aBcd8b:f0,,,2x16x7x7,0.02
"""
V1 = """\
onednn_verbose,v1,info,oneDNN v3.5.0 (commit N/A)
onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:4
onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,memory_descriptors,attributes,auxiliary,problem_desc,exec_time
onednn_verbose,v1,graph,info,template:operation,engine,partition_id,partition_kind,op_names,data_formats,logical_tensors,fpmath_mode,implementation,backend,exec_time
onednn_verbose,v1,primitive,create:cache_miss,cpu,matmul,brg:avx512_core,undef,src:f32::blocked:ab::f0,,,4x8:8x2,1.5
onednn_verbose,v1,primitive,create:cache_hit,cpu,matmul,brg:avx512_core,undef,src:f32::blocked:ab::f0,,,4x8:8x2,0.001
onednn_verbose,v1,primitive,exec,cpu,matmul,brg:avx512_core,undef,src:f32::blocked:ab::f0,,,4x8:8x2,0.25
onednn_verbose,v1,graph,exec,cpu,100002,matmul_post_ops,mm;relu,,in0_f32:0,fpm:strict,larger,dnnl_backend,0.5
"""


@pytest.fixture
def reads(tmp_path):
    def of(text):
        (tmp_path / "out.txt").write_text(text)
        return read(tmp_path / "out.txt")

    return of


def rows(report):
    return [
        (r["name"], r["source"], r["input_shapes"], r["calls"], r.get("self_cpu_ns"))
        for r in report.tables["operators"]
    ]


def facts(report):
    return {row["key"]: row.get("text") or row["value"] for row in report.tables["facts"]}


def test_a_real_log_is_summed_by_primitive_implementation_and_shape():
    report = read(LOG)
    assert (report.tool, report.tool_version, report.problems) == ("onednn", "3.12.0", [])
    lines = [line.split(",") for line in LOG.read_text().splitlines() if ",exec," in line]
    convolutions = Counter((f"convolution {x[7]}", x[6], x[11]) for x in lines if x[5] == "convolution")
    found = report.tables["operators"]
    of_convolution = {(r["name"], r["source"], r["input_shapes"]): r["calls"] for r in found if "conv" in r["name"]}
    assert of_convolution == convolutions
    assert sum(row["self_cpu_ns"] for row in found) == pytest.approx(sum(float(x[-1]) for x in lines) * 1e6)
    assert [row["self_cpu_ns"] for row in found] == sorted((row["self_cpu_ns"] for row in found), reverse=True)
    assert all(row["cpu_avg_ns"] * row["calls"] == pytest.approx(row["cpu_ns"]) for row in found)
    formats = {tuple(re.findall(r"blocked:(\w+)", x[8])) for x in lines if x[5] == "reorder"}
    assert {tuple(r["name"].removeprefix("reorder ").split(" to ")) for r in found if "reorder" in r["name"]} == formats
    assert facts(report) == {
        "onednn_version": "3.12.0", "threads": 2,
        "cpu_isa": "Intel AVX-512 with Intel DL Boost and bfloat16 support",
    }  # fmt: skip


def test_mkl_dnn_has_no_engine_and_no_template(reads):
    report = reads(MKLDNN_0)
    assert report.problems == []
    assert rows(report) == [
        ("convolution forward_training", "jit:avx512_common", "mb64_ic3oc64", 1, 15.5e6),
        ("reorder oihw to Ohwi16o", "jit:uni", "64x3x11x11", 1, 0.5e6),
    ]
    assert facts(report) == {
        "onednn_version": "0.21.1", "cpu_isa": "Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions",
    }  # fmt: skip


def test_dnnl_had_an_engine_before_it_had_attributes(reads):
    assert rows(reads(DNNL_1_1)) == [("pooling forward_inference", "jit:avx", "mb1ic256", 1, 0.25e6)]


def test_a_template_tells_the_columns_and_a_gpu_has_times_of_its_own(reads):
    report = reads(DNNL_2)
    assert rows(report) == [
        ("matmul", "jit:gemm:any", "4x8:8x2", 1, None),
        ("reorder abcd to aBcd8b", "jit:uni", "2x16x7x7", 1, 20000),
    ]
    [matmul, _] = report.tables["operators"]
    assert (matmul["device_kind"], matmul["self_device_ns"]) == ("GPU", 750000)


def test_columns_are_in_the_order_of_the_template_of_primitives(reads):
    """Whatever another version prints; the graph's template has as many columns here and is not theirs."""
    names = "operation,engine,exec_time,primitive,implementation,prop_kind,problem_desc"
    graph = "operation,engine,partition_id,partition_kind,op_names,data_formats,exec_time"
    report = reads(
        f"onednn_verbose,v2,primitive,info,template:{names}\nonednn_verbose,v1,graph,info,template:{graph}\n"
        "onednn_verbose,v1,primitive,exec,cpu,1.5,matmul,brg:avx2,undef,4x8:8x2\n"
    )
    assert rows(report) == [("matmul", "brg:avx2", "4x8:8x2", 1, 1.5e6)]


def test_creation_is_a_fact_and_graphs_are_not_counted_twice(reads):
    report = reads(V1)
    assert report.problems == []
    assert rows(report) == [("matmul", "brg:avx512_core", "4x8:8x2", 1, 0.25e6)]
    assert {"primitives_created": 1, "primitive_creation_s": 0.0015, "threads": 4}.items() <= facts(report).items()


def test_lines_amid_other_output_are_found_wherever_they_begin(reads):
    report = reads(f"epoch 1 loss {V1}epoch 2\n")
    assert (report.tool, [row["calls"] for row in report.tables["operators"]]) == ("onednn", [1])


def test_a_torn_line_is_said_with_its_number(reads):
    lines = V1.splitlines()
    torn = [lines[6][:60] + lines[6], lines[6][:-1] + lines[6]]  # within a text, within the time
    report = reads("\n".join([*lines[:6], *torn, lines[6]]) + "\n")
    assert [(row["calls"], row["self_cpu_ns"]) for row in report.tables["operators"]] == [(3, 0.75e6)]
    assert [(p.severity, p.line) for p in report.problems] == [("error", 7), ("error", 8)]


def test_ranks_are_told_by_a_launchers_labels(reads):
    labelled = [f"{rank}: {line}" for rank in (0, 1) for line in V1.splitlines()]
    report = reads("\n".join(labelled) + "\n")
    assert [(row["rank"], row["calls"]) for row in report.tables["operators"]] == [(0, 1), (1, 1)]
