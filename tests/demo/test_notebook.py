"""docs/tutorial.ipynb: its cells run in their order, as in a notebook, and what they show is the answer."""

import ast
import contextlib
import io
import json
from pathlib import Path

import nsw

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


def shown_by(source, names):
    """What a cell prints, and the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        value = eval(compile(last, str(NOTEBOOK), "eval"), names) if last else None
    return out.getvalue(), value


def test_the_cells_of_the_tutorial_run_and_show_the_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("NSW_ROOT", "NSW_SITES", "NSW_SITE"):
        monkeypatch.delenv(name, raising=False)
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["metadata"]["language_info"]["name"]) == (4, "python")
    names: dict[str, object] = {}
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = {source.splitlines()[-1]: shown_by(source, names) for source in sources}
    assert shown["campaign.good"][1] is True
    for name in ("campaign", "both", "reports"):
        html = shown[name][1]._repr_html_()
        assert "<b>" in html, name
        assert "<table>" in html, name
        assert repr(shown[name][1]).startswith("<"), name
    assert "<svg " in shown["campaign"][1]._repr_html_()
    headline = names["campaign"].answers.headline
    assert "efficiency" in headline
    assert headline in shown['    print("-", finding)'][0]
    assert shown["speed"][1].shape == (3, 2)
    assert shown["speed"][1].loc[4, 128] > shown["speed"][1].loc[1, 128] > 0
    assert shown[sources[-2].splitlines()[-1]][1].shape == (2, 6)
    assert names["summary"].attrs["units"]["total_ns"] == "ns"


def test_names_of_others_are_text_in_a_notebook(tmp_path):
    kernel, file = "<b onload=alert(1)> kernel", "<img src=x onerror=alert(2)>.csv"
    (tmp_path / file).write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        f'100.0,100,1,100.0,100.0,100,100,0.0,"{kernel}"\n'
    )
    reports = nsw.read(tmp_path / file)
    assert kernel in set(reports.tables.gpu_summary["name"])
    html = reports._repr_html_()
    assert "&lt;img src=x onerror=alert(2)&gt;.csv" in html
    assert "<img" not in html
    assert "<b onload" not in html
