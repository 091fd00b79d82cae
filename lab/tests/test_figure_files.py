"""Figures as files."""

from __future__ import annotations

from gapview.report.style import new_figure
from gapview_lab.common.figures import figure_files


def test_files_are_the_same_every_time(tmp_path):
    with new_figure(4, 3) as figure:
        figure.subplots().plot([0, 1, 2], [0, 1, 0])
    first = [path.read_bytes() for path in figure_files(figure, tmp_path / "a.b")]
    second = [path.read_bytes() for path in figure_files(figure, tmp_path / "c")]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.b.png", "a.b.svg", "c.png", "c.svg"]
    assert first == second
    assert first[0].startswith(b"\x89PNG")
    assert b"DejaVu" not in first[1]
    assert b"purl.org" not in first[1]
