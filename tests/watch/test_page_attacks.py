"""The page in a real browser, of runs that are hostile, deleted, replaced or served no more; and by keyboard alone."""

import json
import re
import shutil

import pytest

from pushcen.runtime.local import free_ports
from pushcen.watch import Watch, write_page
from tests.watch.browser import chromium, needs_chromium, open_page, until
from tests.watch.test_lines import make, written

pytestmark = needs_chromium
__all__ = ["chromium", "open_page"]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The folder of a short run."""
    folder = tmp_path_factory.mktemp("runs") / "short"
    make(folder, horizon=1.0)
    return folder


@pytest.fixture
def runs(short, tmp_path):
    """Copies of that run, to be spoilt."""
    for name, method in (("a", "pushcen"), ("b", "swift")):
        shutil.copytree(short, tmp_path / "runs" / name)
        (tmp_path / "runs" / name / "config.toml").write_text(f'clients = 8\nseed = 3\n[method]\nname = "{method}"\n')
    return tmp_path / "runs"


def rows(*losses):
    metric = {"name": "loss", "percent": False, "higher_is_better": False}
    return "".join(json.dumps({"time": at, "loss": loss, "metric": metric}) + "\n" for at, loss in enumerate(losses))


def at_once(folder):
    """Let everything happen at time 0."""
    head = json.loads(written(folder).read_text().splitlines()[0])
    state = json.loads(written(folder, "states.jsonl").read_text().splitlines()[-1])
    first = {key: head[key] for key in ("version", "clients", "since")}
    written(folder).write_text(json.dumps(head | {"horizon": 0.0, "joins": {}}) + "\n")
    written(folder, "states.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(state | {'t': 0.0})}\n")
    (folder / "metrics.jsonl").write_text(rows(0.5))


def fewer(folder):
    """Let states be those of fewer clients, as while a record is written anew."""
    head, *states = map(json.loads, written(folder, "states.jsonl").read_text().splitlines())
    less = {"clients": 1, "online": "1", "held": "1", "waiting": "0", "sent": [1], "lost": [0], "metric": [0.5]}
    written(folder, "states.jsonl").write_text("".join(json.dumps(one | less) + "\n" for one in (head, *states)))


def losses(*values):
    return lambda folder: (folder / "metrics.jsonl").write_text(rows(*values))


HOSTILE = {
    "values so large that a step is nothing to them": losses(1e17, 1e17 + 32),
    "values as far apart as can be": losses(-1e300, 1e300),
    "no time at all": at_once,
    "states of fewer clients": fewer,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_drawn_or_left_out(runs, open_page, tmp_path, name):
    HOSTILE[name](runs / "a")
    write_page(Watch([runs / "a"]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    until(page, "!page.changed && document.querySelector('#curves').children.length > 3")
    assert "NaN" not in page.inner_html("#curves") + page.inner_html("#book")
    assert "undefined" not in page.inner_text("body")
    assert page.evaluate("page.replay.clients.every(client => client.metric !== undefined)")
    assert page.said == []


def test_ticks_are_round_and_few(runs, open_page, tmp_path):
    write_page(Watch([runs]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    assert page.evaluate("[ticks(0, 1, 5), ticks(-3, 3, 6), ticks(0.12, 0.13, 2)]") == [
        [0, 0.2, 0.4, pytest.approx(0.6), 0.8, 1],
        [-3, -2, -1, 0, 1, 2, 3],
        pytest.approx([0.12, 0.125, 0.13]),
    ]
    assert page.evaluate("[...ticks(1, 1, 5), ...ticks(5e-324, 1e300, 9), ...ticks(1e17, 1e17 + 32, 9)].length") < 60


def test_the_keyboard_stays_where_it_is(runs, open_page, tmp_path):
    write_page(Watch([runs]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    page.focus(".run[aria-checked=false]")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "SWIFT"
    assert page.evaluate("document.activeElement.getAttribute('aria-checked')") == "true"
    page.locator("#log button").nth(3).focus()
    page.keyboard.press("Enter")
    until(page, "!page.changed && page.selected !== null")
    assert page.evaluate("document.activeElement.closest('#log') !== null")


def test_the_matrix_says_in_words_who_counts_most_for_the_chosen_client(runs, open_page, tmp_path):
    write_page(Watch([runs]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri() + "#t=1&client=3")
    until(page, "document.querySelector('#matrix-value').textContent.startsWith('3 from ')")
    said = page.text_content("#matrix-value")
    assert re.fullmatch(r"3 from \d, the most: [\d.]+ % of each new model", said)
    page.evaluate("page.seek(0)")
    until(page, "document.querySelector('#matrix-value').textContent.startsWith('receivers down')")
    assert page.text_content("#book-sum") == "✓ adds up to the quantum; the first is of T 1.00"


def test_a_run_that_is_deleted_or_replaced_while_two_watch_it(short, runs, open_page):
    from pushcen.watch.server import serving

    with serving([runs], browser=False) as server:
        pages = [open_page(server.address, "page.runs.length === 2 && page.frames > 0") for _ in range(2)]
        shutil.rmtree(runs / "b")
        for page in pages:
            until(page, "document.querySelectorAll('.run')[1].textContent === 'SWIFTcannot be read'")
        shutil.copytree(short, runs / "b")
        (runs / "b" / "config.toml").write_text('clients = 8\nseed = 3\n[method]\nname = "divshare"\n')
        for page in pages:
            until(page, "document.querySelectorAll('.run')[1].textContent === 'DivShare'")
            assert page.evaluate("page.runs[1].rows.length === page.runs[0].rows.length")
            assert page.evaluate("page.runs[1].events.length === page.runs[0].events.length")
            assert page.said == []


def test_a_page_whose_server_is_gone_says_so_and_goes_on_with_the_next(runs, open_page):
    from pushcen.watch.server import serving

    [port] = free_ports(1)
    with serving([runs], port, browser=False) as server:
        page = open_page(server.address, "page.runs.length === 2 && page.frames > 0")
    until(page, "document.querySelector('#status').textContent.startsWith('the server does not answer')")
    shutil.rmtree(runs / "a")
    with serving([runs], port, browser=False):
        until(page, "page.runs.length === 1 && page.shown.label === 'SWIFT'")
        until(page, "document.querySelector('#status').textContent === ''")
        until(page, "document.querySelectorAll('.run').length === 1")


def test_on_a_phone_the_slider_is_long_enough_to_be_used(runs, open_page, tmp_path):
    write_page(Watch([runs]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.querySelector('#slider').getBoundingClientRect().width") > 280


def test_a_message_under_way_is_seen_before_its_end_is_known(runs, open_page, tmp_path):
    write_page(Watch([runs]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    drawn = page.evaluate(
        """() => {
            const run = page.shown, flight = { from: 0, to: 1, start: 0.5, end: null, lost: false, size: 1 };
            Object.assign(run, { flights: [flight], longest: 0.4 });
            run.facts.head.instant = false;
            let count = 0;
            Path2D.prototype.arc = () => { count++; };
            const at = (time) => { count = 0; page.network.drawFlights(run, time, 0.4); return count; };
            return [0.4, 0.7, 0.95].map(at);
        }"""
    )
    assert drawn == [0, 1, 0]
