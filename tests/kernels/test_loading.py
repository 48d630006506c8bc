"""Building and loading kernels: variants for the processor, other compilers, libraries that do not fit."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import bellnet as bn
from bellnet.kernels import DISABLE_VARIABLE, VARIANTS, calling, kernels
from tests.backends.subjects import randomise
from tests.kernels.layers import CASES, random_inputs, run_both

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("reloading")
needs_kernels = pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")


@needs_kernels
def test_lesser_variant_is_used_where_others_were_not_built(monkeypatch, tmp_path):
    copied = Path(shutil.copytree(calling.SOURCES, tmp_path / "kernels"))
    for name in VARIANTS[:-1]:
        (copied / "built" / f"kernels-{name}.so").unlink(missing_ok=True)
    monkeypatch.setattr(calling, "SOURCES", copied)
    assert kernels()._name.endswith(f"kernels-{VARIANTS[-1]}.so")


@pytest.mark.parametrize(
    ("by_torch", "supported", "variant"),
    [
        ("AVX512", 2, "AVX512"),
        ("AVX512", 1, "AVX2"),
        ("AVX512", 0, "DEFAULT"),
        ("AVX2", 2, "AVX2"),
        ("AVX2", 0, "DEFAULT"),
        ("DEFAULT", 2, "DEFAULT"),
        ("NO AVX", 2, "DEFAULT"),
    ],
)
def test_variant_needs_all_instructions_of_its_level(by_torch, supported, variant, monkeypatch):
    """AVX2 alone is not x86-64-v3: some machines have it without BMI, LZCNT and MOVBE."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: by_torch)
    monkeypatch.setattr(calling, "_supported", lambda: supported)
    assert calling.processor() == variant


@needs_kernels
@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="needs /proc/cpuinfo")
def test_level_of_the_processor_is_that_of_its_flags():
    flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    third = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"} <= flags
    fourth = third and {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags
    assert calling._supported() == third + fourth


def test_kernels_are_disabled_by_a_variable(monkeypatch):
    monkeypatch.setenv(DISABLE_VARIABLE, "1")
    assert kernels() is None
    assert bn.EquivariantLinear("n n -> n n", 2, 3)(torch.ones(4, 4, 2)).shape == (4, 4, 3)


def test_missing_kernels_are_reported_once(monkeypatch, tmp_path):
    monkeypatch.delenv(DISABLE_VARIABLE, raising=False)
    monkeypatch.setattr(calling, "SOURCES", tmp_path)
    layer = bn.EquivariantLinear("n n -> n n", 2, 3)
    with pytest.warns(UserWarning, match=f"there was no C compiler.*\n.*set {DISABLE_VARIABLE}=1"):
        layer(torch.ones(4, 4, 2))
    layer(torch.ones(5, 5, 2))


@needs_kernels
def test_kernels_built_from_other_sources_are_not_loaded(monkeypatch, tmp_path):
    """As after an update of a clone that is not installed again: the structs may have changed."""
    copied = Path(shutil.copytree(calling.SOURCES, tmp_path / "kernels"))
    with (copied / "common.h").open("a") as opened:
        opened.write("/* and more */\n")
    monkeypatch.setattr(calling, "SOURCES", copied)
    with pytest.warns(UserWarning, match="built from other sources"):
        assert kernels() is None


@pytest.fixture
def building():
    spec = importlib.util.spec_from_file_location("build_kernels", ROOT / "build_kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_built_without_a_compiler(building, monkeypatch, tmp_path, capfd):
    for compiler in ("there-is-no-such-compiler", f"{sys.executable} -c 'raise SystemExit(1)'"):
        monkeypatch.setenv("CC", compiler)
        assert building.compile_kernels(calling.SOURCES, tmp_path) == []
        assert not list(tmp_path.iterdir())
        assert "built without the kernels kernels-DEFAULT.so" in capfd.readouterr().err


UNLIKE_GCC = """#!/bin/sh
case "$*" in
*-dM*) printf '#define __GNUC__ 4\\n#define __clang__ 1\\n' ;;
*-fopenmp* | *-fno-tree*) echo "unknown argument" >&2; exit 1 ;;
*) exec cc "$@" ;;
esac
"""


@needs_kernels
@pytest.mark.slow
@pytest.mark.parametrize("threads", [2], indirect=True)
@pytest.mark.parametrize("compiler", ["clang", "unlike-gcc"])
def test_other_compilers_than_gcc_build_kernels_of_one_thread(
    compiler, building, threads, monkeypatch, tmp_path, capfd
):
    if compiler == "unlike-gcc":
        script = tmp_path / compiler
        script.write_text(UNLIKE_GCC)
        script.chmod(0o755)
        compiler = str(script)
    if shutil.which(compiler) is None or shutil.which("cc") is None:
        pytest.skip(f"{compiler} or cc is not here")
    copied = Path(shutil.copytree(calling.SOURCES, tmp_path / "kernels", ignore=shutil.ignore_patterns("built")))
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setattr(building, "VARIANTS", {"DEFAULT": []})
    (library,) = building.compile_kernels(copied, copied / "built")
    assert capfd.readouterr().err == f"bellnet's kernels get one thread: {compiler} is not GCC\n"
    monkeypatch.setattr(calling, "SOURCES", copied)
    assert kernels()._name == str(library)
    for spec, sizes, channels in CASES:
        layer = randomise(bn.EquivariantLinear(spec, *channels, dtype=torch.float64))
        for one, other in zip(*run_both(layer, *random_inputs(layer, sizes, 3)), strict=True):
            assert_close(one, other)


@pytest.mark.slow
def test_wheel_without_kernels_is_for_every_machine(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    sources = tmp_path / "sources"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(sources)], check=True)
    subprocess.run(command, cwd=sources, check=True, capture_output=True, env={"CC": "there-is-no-such-compiler"})
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")


@needs_kernels
def test_older_library_without_functions_is_not_loaded(monkeypatch, tmp_path):
    """As after an update of a clone that was not installed again: an older library lacks functions."""
    source = tmp_path / "other.c"
    source.write_text("long long bellnet_sources(void) { return 1; }\n")
    library = tmp_path / "kernels-DEFAULT.so"
    subprocess.run([shutil.which("cc"), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    monkeypatch.setenv("BELLNET_KERNELS", str(tmp_path))
    with pytest.warns(UserWarning, match="built from other sources"):
        assert kernels() is None
