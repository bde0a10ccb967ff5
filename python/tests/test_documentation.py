"""The programs of docs/analytics.md run as they are written there."""

import re
import shutil
from pathlib import Path

import pytest

from runs import table, write

PAGE = Path(__file__).resolve().parents[2] / "docs" / "analytics.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_the_page_has_programs() -> None:
    assert PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_documentation_runs(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wifi-small").mkdir()
    write(tmp_path / "wifi-small" / "runs.csv", table(60))
    shutil.copytree(Path(__file__).parent / "data" / "train", tmp_path / "ablation")
    (tmp_path / "figures").mkdir()
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(PAGE), "exec"), {})
    assert capsys.readouterr().out
