"""Kernel names for people and for filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.tables import names as kernel_names
from nsw.tables.names import demangle, short_name

SHORT = {
    "[CUDA memcpy HtoD]": "[CUDA memcpy HtoD]",
    "volta_sgemm_128x128_tn": "volta_sgemm_128x128_tn",
    "cudaLaunchKernel": "cudaLaunchKernel",
    "mxnet::op::convMM(float const *, float*, int)": "convMM",
    "void (anonymous namespace)::k<float, 4>(float*, int)": "k",
    "void <unnamed>::softmax_warp_forward<float, 8>(float *)": "softmax_warp_forward",
    "void unnamed>::fill_kernel<float, void unnamed>::inner<float>(T1)>(T3)": "fill_kernel",  # as ncu cuts <unnamed>
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long) [105]": (
        "ncclKernel_AllReduce_RING_LL_Sum_float"
    ),
    "void flash::fwd_kernel<int=32, int=69>(f": "fwd_kernel",
    "std::enable_if<std::is_integral<float>::value, int>::type axpy<float>(float*)": "axpy",
    "auto foo<int>(int) -> decltype(int)": "foo",
    "void foo<(4>3), 2>(int)": "foo",
    "bool operator< <int>(A<int> const&, A<int> const&)": "operator<",
    "ns::operator<<(std::ostream&, int)": "ns::operator<<",
    "A<int>::operator int() const": "A::operator int",
    "Foo::operator()(int) const": "Foo::operator()",
    "foo(int)::{lambda(int)#1}::operator()(int) const": "foo::{lambda}",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>(cutlass_80_simt::Params)": (
        "cutlass_80_simt_sgemm_128x32_8x5_tn_align1"
    ),
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>, X>>(X)": (
        "cutlass::device_kernel<GemmUniversal>"
    ),
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array"
    "<char*, 1> >(int, at::native::FillFunctor<float>)": "vectorized_elementwise_kernel<FillFunctor>",
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::BinaryFunctor<float,"
    " at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1}>(int)": (
        "elementwise_kernel<MulFunctor>"
    ),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(float)": (
        "reduce_kernel<MeanOps>"
    ),
    "_Z4axpyfPfS_": "axpy",
    "void cutlass__5x_cudnn::Kernel<cutlass__5x_cudnn::reduction::kernel::ReduceSplitK<cutlass__5x_cudnn::Matrix>>(X)": (
        "cutlass__5x_cudnn::Kernel<ReduceSplitK>"
    ),
    # cuDNN's names that no demangler reads
    "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblockEEEEvNT_6Params_": (
        "cutlass__5x_cudnn::Kernel<ImplicitGemmConvolution>"
    ),
    "_ZN2at6native13reduce_kernelILi4": "reduce_kernel",  # cut short: no demangler reads it
    "void elementwise_kernel<128, 4, void nocast<unnamed>::Compare<float>>(Base &, T1 &)>(int, T3)": "elementwise_kernel",
    "string 41": "string 41",  # the name of an nsys export that StringIds lacks
    "": "",
}


@pytest.mark.parametrize(("name", "wanted"), SHORT.items())
def test_short_name_says_what_a_table_of_hot_spots_needs(name, wanted):
    assert short_name(name) == wanted


def test_lambdas_that_python_demanglers_refuse_are_demangled():
    mangled = (
        "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_16sqrt_kernel_cudaERNS_18TensorIteratorBase"
        "EENKUlvE0_clEvENKUlvE0_clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_"
    )
    assert demangle(mangled).startswith(
        "void at::native::vectorized_elementwise_kernel<4, at::native::sqrt_kernel_cuda("
    )
    assert short_name(mangled) == "vectorized_elementwise_kernel<sqrt_kernel_cuda>"


@pytest.mark.parametrize("name", ["main_69_gpu", "_Z", "_Znonsense", "_Z1f\n", "_Zé", "_Z" + "x" * 100_000, ""])
def test_what_is_not_mangled_or_not_demanglable_stays(name):
    assert demangle(name) == name


def test_a_name_that_would_fill_the_memory_stays_mangled_and_spoils_no_other():
    bomb = "_Z1fN1aIiiEES_IS0_S0_E" + "".join(f"S_IS{c}_S{c}_E" for c in "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    answers = kernel_names.demangle_all(["_Z4axpyfPf", bomb, "_Z4gemmPf"])
    assert answers == {"_Z4axpyfPf": "axpy(float, float*)", bomb: bomb, "_Z4gemmPf": "gemm(float*)"}


def test_without_a_cpp_runtime_names_stay_mangled(monkeypatch):
    child = kernel_names._DemanglerProcess()
    monkeypatch.setattr(kernel_names, "_CHILD", "raise SystemExit(3)")
    monkeypatch.setattr(kernel_names, "_CHILD_PROCESS", child)
    assert kernel_names.demangle_all(["_Z4axpyfPf"]) == {"_Z4axpyfPf": "_Z4axpyfPf"}
    child.stop()


def test_many_names_are_asked_for_in_batches():
    names = [f"_Z{len(f'kernel{i}')}kernel{i}Pf" for i in range(3000)]
    assert set(kernel_names.demangle_all(names).values()) == {f"kernel{i}(float*)" for i in range(3000)}


_PIECES = st.sampled_from(
    [
        "operator",
        "operator()",
        "operator<",
        "<",
        ">",
        "(",
        ")",
        "{lambda",
        "}",
        "::",
        " ",
        "f",
        "Kernel",
        "->",
        "[1]",
        ",",
        "_",
    ]
)


@given(st.lists(_PIECES, max_size=60).map("".join) | st.text(max_size=200))
def test_any_text_has_a_short_name(text):
    assert short_name(text) or not text.strip()


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "a<",
        "(",
        "a::",
        "f()::",
        "Kernel<",
        "f()::{lambda",
        "k<a(){lambda",
        "elementwise",
        "a ",
        "operator ",
    ],
)
def test_a_hostile_name_costs_little(piece):
    short_name(piece * (60_000 // len(piece)))
    # (quadratic code takes minutes here)


def test_names_after_an_interruption_are_their_own(monkeypatch):
    child = kernel_names._DemanglerProcess()
    monkeypatch.setattr(kernel_names, "_CHILD_PROCESS", child)
    assert kernel_names.demangle_all(["_Z1av"]) == {"_Z1av": "a()"}

    def interrupted(_how_many, _deadline):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(child, "_read_lines", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kernel_names.demangle_all(["_Z1bv", "_Z1cv"])
    assert kernel_names.demangle_all(["_Z1dv"]) == {"_Z1dv": "d()"}
    child.stop()
