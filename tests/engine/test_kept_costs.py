"""Cost curves that are kept from run to run."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from fakes.models import packed, tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup_spec.engine.budget import CostCurve
from lookup_spec.engine.kept_costs import KeptCosts
from lookup_spec.model.forward import PackedModel

times = st.floats(1e-6, 100.0)
MODEL = "gpt-2, learned positions"


@given(st.dictionaries(st.integers(1, 2000), times, min_size=2, max_size=6), st.floats(0.0, 1e-3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_curve_comes_back_as_it_was(tmp_path: Path, seconds: dict[int, float], per_pair: float) -> None:
    curve = CostCurve(seconds, per_pair)
    kept = KeptCosts(tmp_path, packed(MODEL))
    kept.write(curve)
    back = kept.read()
    assert back is not None
    assert back.known == curve.known
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_each_model_and_number_of_threads_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve of something else is never taken, strict mode's not either."""
    KeptCosts(tmp_path, packed(MODEL)).write(CostCurve({1: 1.0, 2: 2.0}))
    assert KeptCosts(tmp_path, packed(MODEL)).read() is not None
    assert KeptCosts(tmp_path, packed("llama")).read() is None
    assert KeptCosts(tmp_path, packed(MODEL), graphs=True).read() is None
    assert KeptCosts(tmp_path, PackedModel(copy.deepcopy(tiny(MODEL)), strict=True)).read() is None
    monkeypatch.setattr("lookup_spec.engine.kept_costs.torch.get_num_threads", lambda: 99)
    assert KeptCosts(tmp_path, packed(MODEL)).read() is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"seconds": {"1": 1.0}, "per_pair": 0}', '{"seconds": {"1": 1.0, "2": NaN}, "per_pair": 0}',
     '{"seconds": {"1": 1.0, "2": -1}, "per_pair": 0}', '{"seconds": {"1": 1, "x": 2}, "per_pair": 0}', "\x00"],
)  # fmt: skip
def test_a_broken_file_is_passed_over_and_said(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptCosts(tmp_path, packed(MODEL))
    kept.write(CostCurve({1: 1.0, 2: 2.0}))
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    assert kept.read() is None
    assert "not used and will be replaced" in caplog.text


def test_a_place_that_cannot_be_written_costs_nothing_but_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    KeptCosts(tmp_path / "file", packed(MODEL)).write(CostCurve({1: 1.0, 2: 2.0}))
    assert "cannot be kept" in caplog.text


def test_nothing_is_kept_unasked() -> None:
    kept = KeptCosts(None, packed(MODEL))
    kept.write(CostCurve({1: 1.0, 2: 2.0}))
    assert kept.read() is None
