"""Draw accuracy against bytes for all methods of the field, from results/: `python scripts/draw_field.py`.

Each method is a point, where its runs end, named beside it; the thin line is how it came there.
"""

import itertools
from pathlib import Path

from pushcen.analysis.bytes_figures import front
from pushcen.analysis.style import styles
from pushcen.drawing import GREY, INK, canvas, drawing, write
from pushcen.reproduce.experiment import TITLES, read
from pushcen.reproduce.plan import plan
from pushcen.reproduce.results import gather
from pushcen.runs import RunStore

ROOT = Path(__file__).parent.parent
SEEDS = {"digits": 5, "cifar10": 3}
SIDES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
FAR = (5, 11, 18, 26, 36, 48, 62)


def draw(dataset):
    """Draw one data set's picture."""
    experiment = read("field").only(alphas=(0.4,))
    store = RunStore(ROOT / "results" / f"{dataset}-field")
    found = [point for point in gather(plan(experiment, dataset, "field", SEEDS[dataset]), store) if point.runs]
    looks = styles([next(iter(point.runs.values())).method for point in found])
    with drawing():
        figure, axes = canvas(width=8.4, height=5.6)
        ends = []
        for point, look in zip(found, looks, strict=True):
            group = point.group()
            sent, reached = group.band("bytes_sent"), group.band("accuracy")
            if not sent.mean[-1]:
                axes.axhline(100 * reached.mean[-1], color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
                note = (f"{point.row.label} (sends nothing)", 100 * reached.mean[-1])
                continue
            at = dict(zip(sent.times, sent.mean, strict=True))
            path = [(at[t] / 1e6, 100 * a) for t, a in zip(reached.times, reached.mean, strict=True) if at.get(t)]
            axes.plot(*zip(*path, strict=True), color=look.colour, linewidth=0.7, alpha=0.35, zorder=1)
            axes.plot(*path[-1], look.marker, color=look.colour, markersize=7, markeredgewidth=1.8, zorder=3)
            ends.append((path[-1], point.row.label, look.colour))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set(xlabel="sent by all clients together (MB)", ylabel="accuracy %, mean over clients and seeds")
        axes.set_title(f"{TITLES[dataset]}, 20 clients", loc="left")
        scores = [score for (_, score), _, _ in ends]
        low, high = min([*scores, note[1]]), max(scores)
        axes.set_ylim(low - 0.16 * (high - low), high + 0.12 * (high - low))
        sent = [sent for (sent, _), _, _ in ends]
        axes.set_xlim(min(sent) / 2, max(sent) * 2.5)
        best = front([end for end, _, _ in ends], lambda one, other: one > other)
        axes.step(*zip(*best, strict=True), where="post", color="#999999", linewidth=5, alpha=0.3, zorder=0)
        clear = 3 if min(ends)[0][1] < note[1] else -11  # of the leftmost point
        axes.annotate(note[0], (0.01, note[1]), xycoords=("axes fraction", "data"), xytext=(0, clear),
                      textcoords="offset points", fontsize=8, color=GREY)  # fmt: skip
        name(figure, axes, ends)
    write(figure, ROOT / "docs" / "pictures" / f"field_{dataset}.svg")
    return figure


def name(figure, axes, ends):
    """Write each point's name beside it, where it covers least."""
    figure.draw_without_rendering()
    dots = [axes.transData.transform(end) for end, _, _ in ends]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    frame, scale = axes.get_window_extent(), figure.dpi / 72
    for (end, label, colour), (x, y) in sorted(zip(ends, dots, strict=True), key=lambda one: -one[1][1]):
        text = axes.annotate(label, end, xytext=(0, 0), textcoords="offset points", fontsize=8, color=INK)
        size = text.get_window_extent()
        best = None
        for far, (right, up) in itertools.product(FAR, SIDES):
            dx = right * far * scale - size.width * (1 - right) / 2
            dy = up * far * scale - size.height / 2
            box = (x + dx - 1, y + dy - 1, x + dx + size.width + 1, y + dy + size.height + 1)
            outside = box[0] < frame.x0 or box[2] > frame.x1 or box[1] < frame.y0 or box[3] > frame.y1
            cost = sum(overlap(box, other) for other in taken) + 1e4 * outside + far
            if best is None or cost < best[0]:
                best = (cost, dx / scale, dy / scale, box, far)
        text.set_position(best[1:3])
        if best[4] > FAR[1]:
            middle = ((best[3][0] + best[3][2]) / 2, (best[3][1] + best[3][3]) / 2)
            near = axes.transData.inverted().transform(middle)
            axes.plot([end[0], near[0]], [end[1], near[1]], color=colour, linewidth=0.5, alpha=0.6, zorder=2)
            text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.9})
        text.set_zorder(4)
        taken.append(best[3])


def overlap(one, other):
    """Return how much of two boxes is in both."""
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0


if __name__ == "__main__":
    for dataset in SEEDS:
        draw(dataset)
