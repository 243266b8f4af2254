"""The page in a real browser: exported to one file, and served while a run goes on."""

import json
import math
import urllib.error
import urllib.request

import pytest

from pushcen.watch import Watch, write_page
from pushcen.watch.export import MOST
from tests.simulation.test_determinism import EVERYTHING
from tests.watch.browser import chromium, needs_chromium, open_page, until
from tests.watch.test_lines import make, written

pytestmark = needs_chromium
__all__ = ["chromium", "open_page"]
HOSTILE = '<img src=x onerror="document.title=1"></script><script>document.title=1</script>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run in which everything happens, in a folder whose name would be HTML."""
    made = tmp_path_factory.mktemp("runs") / HOSTILE.replace("/", "|")
    make(made, **EVERYTHING | {"horizon": 4.0})
    return made


@pytest.fixture(scope="module")
def exported(folder, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "page.html"
    size, every = write_page(Watch([folder]), file)
    assert size == file.stat().st_size < MOST
    assert every == 1
    return file.as_uri()


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def online_at(folder, time):
    """Return who is there at a moment, by the events alone."""
    found = set()
    for line in written(folder).read_text().splitlines()[1:]:
        kind, at, client, what, *_ = json.loads(line)
        if kind == "p" and at <= time:
            (found.add if what in ("joins", "returns", "is repaired") else found.discard)(client)
    return found


def seek(page, time):
    page.evaluate("time => page.seek(time)", time)
    until(page, "time => !page.changed && page.time === time", time)


def test_ten_moments_have_the_numbers_of_the_metrics(folder, exported, open_page):
    page, rows = open_page(exported), rows_of(folder)
    for moment in range(10):
        time = 1.0 + 0.3 * moment
        seek(page, time)
        row = next(row for row in reversed(rows) if row["time"] <= time)
        shown = page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('[data-figure]')]"
            ".map(figure => [figure.dataset.figure, +figure.dataset.value]))"
        )
        assert set(shown) >= {"time", "accuracy", "accuracy_worst_tenth", "bytes_sent", "steps", "online", "tau"}
        assert shown == {name: row[name] for name in shown}
        text = page.text_content("[data-figure=accuracy]")
        assert float(text.removesuffix(" %")) == pytest.approx(100 * row["accuracy"], abs=0.0501)
        clients = page.evaluate("page.replay.clients.map(client => [client.online, client.metric, client.held])")
        assert {at for at, (online, *_) in enumerate(clients) if online} == online_at(folder, time)
        if math.isclose(time, row["time"]):
            assert sum(online for online, *_ in clients) == row["online"]
            there = {str(at): metric for at, (online, metric, _) in enumerate(clients) if online}
            assert there == {name: round(value, 5) for name, value in row["clients"].items()}
    assert page.said == []


def test_it_needs_nothing_but_its_own_file(exported, open_page):
    page = open_page(exported)
    assert page.asked == [exported]


def test_mass_adds_up_at_every_evaluation_and_a_quantum_less_is_seen(folder, exported, open_page, tmp_path):
    page = open_page(exported)
    assert page.text_content("#book-sum") == "✓ adds up to the quantum"
    assert page.evaluate("page.shown.states.every(state => addsUp(state.book))")
    copy = tmp_path / "run"
    for name in ("config.toml", "metrics.jsonl", "record/events.jsonl", "record/states.jsonl"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((folder / name).read_bytes())
    head, *states = written(copy, "states.jsonl").read_text().splitlines()
    last = json.loads(states[-1])
    last["book"]["held"] = str(int(last["book"]["held"]) - 1)
    written(copy, "states.jsonl").write_text("\n".join([head, *states[:-1], json.dumps(last)]) + "\n")
    write_page(Watch([copy]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    assert page.text_content("#book-sum") == "✗ does not add up"
    assert page.locator("#book text", has_text="does not add up").count() == 1


def test_what_is_hostile_stays_text(folder, open_page, tmp_path):
    states = written(folder, "states.jsonl")
    before = states.read_text()
    failed = {"t": 4.0, "failed": 1, "why": HOSTILE}
    try:
        states.write_text(before + json.dumps(failed) + "\n")
        write_page(Watch([folder]), tmp_path / "page.html")
    finally:
        states.write_text(before)
    page = open_page((tmp_path / "page.html").as_uri())
    page.select_option("#log-kind", "f")
    until(page, "document.querySelector('#log').textContent.includes('onerror')")
    assert HOSTILE in page.text_content("#log")
    assert "<img" in page.get_attribute(".run", "title")
    assert page.title() == "pushcen"
    assert page.evaluate("document.images.length") == 0
    assert page.said == []


def test_a_link_leads_to_a_moment_and_a_client(exported, open_page):
    page = open_page(f"{exported}#t=2.5&client=3")
    assert page.text_content("#clock") == "T 2.50 of 4"
    assert page.text_content("#card h3") == "Client 3"
    seek(page, 1.25)
    page.evaluate("page.select(5)")
    until(page, "location.hash === '#t=1.25&client=5'")
    page.keyboard.press("End")
    until(page, "location.hash === '#client=5'")
    page.keyboard.press("Escape")
    until(page, "!location.href.includes('#')")


def test_the_keyboard_is_enough(exported, open_page):
    page = open_page(f"{exported}#t=1")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("page.time") == pytest.approx(1.02)
    page.keyboard.press("Home")
    assert page.evaluate("page.time") == 0
    page.keyboard.press(" ")
    until(page, "page.playing && page.time > 0.05")
    page.keyboard.press(" ")
    assert not page.evaluate("page.playing")
    page.keyboard.press("End")
    until(page, "page.time === 4")
    page.focus("#network")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('#card h3')?.textContent === 'Client 1'")
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") != theme


def test_a_log_entry_leads_to_its_client_and_can_be_filtered(exported, open_page):
    page = open_page(exported)
    page.select_option("#log-kind", "p")
    until(page, "!document.querySelector('#log').textContent.includes('pushes')")
    entry = page.locator("#log button").first
    time, words = entry.locator("time").text_content(), entry.locator("span").text_content()
    entry.click()
    until(page, "document.querySelector('#card h3') !== null")
    assert page.text_content("#card h3") == f"Client {words.split()[0]}"
    assert page.evaluate("page.time") == pytest.approx(float(time), abs=0.01)


@pytest.mark.parametrize("form", ["svg", "png", "csv"])
def test_curves_can_be_saved(exported, open_page, form, tmp_path):
    page = open_page(exported)
    with page.expect_download() as download:
        page.click(f"[data-save={form}]")
    download.value.save_as(tmp_path / "saved")
    data = (tmp_path / "saved").read_bytes()
    assert data.startswith({"svg": b"<svg", "png": b"\x89PNG", "csv": b"run,time,accuracy,sd\n"}[form])
    assert len(data) > 100
    if form == "csv":
        page.select_option("#curves-x", "bytes_sent")
        with page.expect_download() as download:
            page.click("[data-save=csv]")
        header, first = download.value.path().read_text().splitlines()[:2]
        assert header == "run,time,bytes_sent,accuracy,sd"
        assert len(first.split(",")) == 5


def test_every_figure_is_drawn_over_every_axis(exported, open_page):
    page = open_page(exported)
    count = {name: page.locator(f"#curves-{name} option").count() for name in "xy"}
    assert count["y"] >= 6
    assert count["x"] == 3 + (page.evaluate("page.shown.facts.seconds !== null"))
    for y in range(count["y"]):
        for x in range(count["x"]):
            page.select_option("#curves-y", index=y)
            page.select_option("#curves-x", index=x)
            page.evaluate("page.changed = true")
            until(page, "!page.changed")
            assert "NaN" not in page.inner_html("#curves")
    assert page.said == []


def test_nothing_is_wider_than_a_narrow_screen(exported, open_page):
    page = open_page(exported)
    for width in (360, 800, 1900):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_circle_is_cut_off(exported, open_page):
    page = open_page(exported)
    for width in (360, 800, 1300):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("page.changed = true")
        until(
            page,
            "!page.changed && page.network.width === document.querySelector('#network').getBoundingClientRect().width",
        )
        rims = page.evaluate(
            "[page.network.width, page.network.height].map((side, axis) => page.network.places.map((place, number) =>"
            "Math.min(place[axis], side - place[axis]) - MOST_SIZE * page.network.radius)).flat()"
        )
        assert len(rims) == 16
        assert min(rims) >= 8, "the mark of the selected one is seven pixels around it"


def test_a_card_has_the_labels_of_a_clients_data(folder, exported, open_page):
    page = open_page(f"{exported}#t=2.5&client=3")
    labels = json.loads(written(folder).read_text().split("\n", 1)[0])["labels"]
    told = ", ".join(f"{label}: {counts[3]}" for label, counts in enumerate(labels))
    assert page.get_attribute("#card .labels", "aria-label") == f"samples by label: {told}"
    assert page.locator("#card .labels rect").count() == len(labels)


def test_the_page_of_a_run_grows_with_it(folder, open_page, tmp_path):
    from pushcen.watch.server import serving

    run = tmp_path / "run"
    files = ("config.toml", "status.json", "metrics.jsonl", "record/events.jsonl", "record/states.jsonl")
    whole = {name: (folder / name).read_bytes().splitlines(keepends=True) for name in files}
    status = [b'{"status": "running"}']

    def write(share):
        for name, lines in whole.items():
            (run / name).parent.mkdir(parents=True, exist_ok=True)
            part = len(lines) if name == "config.toml" else math.ceil(share * len(lines))
            (run / name).write_bytes(b"".join(status if name == "status.json" else lines[:part]))

    with serving([run], browser=False) as server:
        write(0.3)
        page = open_page(server.address)
        events = page.evaluate("page.shown.events.length")
        time = page.evaluate("page.end")
        assert (events, page.text_content(".run small")) == (math.ceil(0.3 * len(whole[files[3]])) - 1, "running")
        write(0.7)
        until(page, "before => page.shown.events.length > before", events)
        until(page, "before => page.time > before", time)
        status[0] = b'{"status": "finished"}'
        write(1.0)
        until(page, "all => page.shown.events.length === all", len(whole[files[3]]) - 1)
        until(page, "page.time === 4")
        assert page.evaluate("page.shown.rows.length") == 4
        assert page.said == []
        assert all(url.startswith(server.address) for url in page.asked)


def test_the_server_answers_this_machine_by_its_name_and_gives_only_the_page(folder):
    from pushcen.watch.server import serving

    def ask(path, host=None):
        request = urllib.request.Request(server.address + path, headers={"Host": host} if host else {})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.headers

    with serving([folder], browser=False) as server:
        status, headers = ask("")
        assert status == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert ask("main.js")[0] == 200
        assert ask("", host="evil.example")[0] == 400
        for path in ("../server.py", "%2e%2e/server.py", "index.html", "config.toml"):
            assert ask(path)[0] == 404


def test_many_clients_keep_moving(open_page, tmp_path, record_property):
    """Measured, not asserted: a machine without a graphics card, and with others at work, decides how fast."""
    make(tmp_path / "many", clients=1000, horizon=0.5)
    write_page(Watch([tmp_path / "many"]), tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri())
    page.evaluate("page.play(true)")
    page.evaluate("[before, since] = [page.frames, performance.now()]")
    page.wait_for_timeout(3000)
    rate = page.evaluate("1000 * (page.frames - before) / (performance.now() - since)")
    record_property("frames_per_second", rate)
    print(f"1,000 clients: {rate:.0f} frames a second")
    assert rate > 0
