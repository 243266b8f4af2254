"""In a notebook, results show themselves, and what runs shows how far it is: in a real kernel, cell by cell."""

import pytest

import pushcen
from pushcen.errors import OptionError
from pushcen.notebook import in_notebook

SMALL = {"clients": 3, "horizon": 0.5, "executor": {"workers": 1}}
LIVE = SMALL | {"horizon": 1.5, "evaluation": {"every": 0.5}, "live": True}
BOTH = "['pushcen', 'independent']"
CELLS = {
    "begin": "import pushcen",
    "run": f"result = pushcen.simulate(**{SMALL}); float(result.frame['accuracy'].iloc[-1])",
    "result": "result",
    "table": "result.table",
    "live": f"again = pushcen.simulate(**{LIVE}); again.folder.as_posix()",
    "compare": f"results = pushcen.compare({BOTH}, **{LIVE}); results['pushcen'].folder.as_posix()",
    "results": "results",
    "jobs": f"pushcen.compare({BOTH}, live=True, jobs=2, **{SMALL})['independent'].folder.as_posix()",
}
PICTURE = '<img alt="the metric over pseudo-time{}" src="data:image/svg+xml;base64,'


class Cells:
    """What the cells of a notebook show, by name, and every picture that was ever in them."""

    def __init__(self, folder):
        nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install nbclient")
        nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient")
        pytest.importorskip("ipykernel", reason="needs a kernel: pip install ipykernel")
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS.values()])
        self.pictures = {name: [] for name in CELLS}
        pictures = list(self.pictures.values())

        class Client(nbclient.NotebookClient):
            def process_message(self, message, cell, cell_index):
                if message["msg_type"].endswith("display_data"):  # a new one, or in place of the one before
                    pictures[cell_index].append(message["content"]["data"]["text/html"])
                return super().process_message(message, cell, cell_index)

        resources = {"metadata": {"path": str(folder)}}
        Client(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
        self._cells = dict(zip(CELLS, notebook.cells, strict=True))

    def outputs(self, cell, kind):
        return [output for output in self._cells[cell].outputs if output.output_type == kind]

    def said(self, cell, stream):
        return "".join(output.text for output in self.outputs(cell, "stream") if output.name == stream)

    def shown(self, cell, form="text/html"):
        [output] = self.outputs(cell, "execute_result")
        return output.data[form]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(folder / "jupyter"))
        return Cells(folder)


def test_here_is_no_notebook_and_no_bar(capsys):
    assert not in_notebook()
    pushcen.simulate(**SMALL)
    assert capsys.readouterr().err == ""


def test_a_run_has_a_bar_with_its_accuracy(cells):
    last = cells.said("run", "stderr").rstrip("\n").split("\r")[-1]
    assert "pushcen 100%" in last
    assert "T 0.5 of 0.5" in last
    assert f"accuracy {100 * float(cells.shown('run', 'text/plain')):.1f} %" in last


def test_a_comparison_has_bars(cells):
    for cell, names in (("compare", ("pushcen", "independent")), ("jobs", ("runs",))):
        for name in names:
            assert f"{name} 100%" in cells.said(cell, "stderr")


def test_a_result_shows_its_table_and_its_figure_and_a_table_itself(cells):
    for cell in ("result", "results"):
        assert "<table>" in cells.shown(cell)
        assert PICTURE.format("") in cells.shown(cell)
    assert cells.shown("table") in cells.shown("result")


def test_where_only_text_is_shown_it_is_short(cells):
    assert cells.shown("result", "text/plain") == "Result(runs/digits-pushcen)"
    assert cells.shown("table", "text/plain").startswith("| method | accuracy % |")
    assert cells.shown("results", "text/plain") == "Comparison(pushcen, independent)"


def test_runs_go_to_a_folder_that_is_said(cells):
    for cell, folder, run in (
        ("run", "runs/digits-pushcen", ""),
        ("live", "runs/digits-pushcen-2", ""),
        ("compare", "runs/compare-digits", "/pushcen"),
        ("jobs", "runs/compare-digits-2", "/independent"),
    ):
        assert f"run folder: {folder}\n" in cells.said(cell, "stdout")
        if cell != "run":
            assert cells.shown(cell, "text/plain") == f"'{folder}{run}'"


@pytest.mark.parametrize("cell", ["live", "compare", "jobs"])
def test_a_curve_grows_in_the_cell(cells, cell):
    [picture] = cells.outputs(cell, "display_data")  # one, that was drawn again and again
    first, *_, last = cells.pictures[cell]
    assert first.startswith(PICTURE.format(", so far"))
    assert last == picture.data["text/html"]
    assert first != last or cell == "jobs", "of several at a time, all may have ended when the first is drawn"


def test_elsewhere_there_is_no_cell_to_show_it_in():
    with pytest.raises(OptionError, match="is for a notebook's cell"):
        pushcen.simulate(live=True, **SMALL)
