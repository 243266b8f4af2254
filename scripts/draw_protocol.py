"""Make the tables and pictures of docs/protocol.md: `python scripts/draw_protocol.py` (about five minutes)."""

import statistics
from pathlib import Path

from pushcen.bench.averaging import Links, paper, unbalanced
from pushcen.drawing import BLUE, GREEN, GREY, ORANGE, SKY, YELLOW, canvas, drawing, legend_below, write
from pushcen.protocol import Buffer, ByMass, Rules, Whole

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
SEEDS = range(20)
CASES = {
    "every model, nothing lost": (Buffer(4, "keep", newest_only=False), Links()),
    "every model, 30 % surely fail": (Buffer(4, "keep", newest_only=False), Links(fails=0.3)),
    "keep, nothing lost": (Buffer(4, "keep"), Links()),
    "keep, 30 % in doubt": (Buffer(4, "keep"), Links(doubt=0.3)),
    "drop, nothing lost": (Buffer(4, "drop"), Links()),
}
COLOURS = [BLUE, SKY, GREEN, YELLOW, ORANGE]
STYLES = ["-", "--", "-", "-.", ":"]


def averaging():
    print("| 200 peers, L = 4, 20 seeds | offset, root mean square | largest | spread, largest | least live mass |")
    print("|---|---|---|---|---|")
    figure, (upper, lower) = canvas(2, height=5.6, sharex=True)
    for (label, (buffer, links)), colour, style in zip(CASES.items(), COLOURS, STYLES, strict=True):
        rules = Rules(buffer, ByMass(), Whole(receivers=0))
        traces = [unbalanced(rules, seed, links).run(150, 2) for seed in SEEDS]
        offsets = [abs(trace.offset) for trace in traces]
        root = statistics.fmean(offset**2 for offset in offsets) ** 0.5
        spread, live = max(trace.spread for trace in traces), min(trace.live[-1] for trace in traces)
        print(f"| {label} | {root:.1e} | {max(offsets):.1e} | {spread:.1e} | {live:.3g} |")
        times = traces[0].times
        middle = [statistics.median(column) for column in zip(*(trace.error for trace in traces), strict=True)]
        upper.semilogy(times, [max(value, 1e-16) for value in middle], style, color=colour, label=label)
        middle = [statistics.median(column) for column in zip(*(trace.live for trace in traces), strict=True)]
        lower.semilogy(times, middle, style, color=colour, label=label)
    upper.set(ylabel="distance from the true average\n(root mean square)")
    upper.set_title("median of 20 seeds", fontsize=9, loc="right", color=GREY)
    for axes in (upper, lower):
        axes.yaxis.set_major_formatter("{x:g}")
    lower.set(xlabel="pseudo-time", ylabel="live mass\n(share of what was founded)")
    legend_below(figure)
    write(figure, PICTURES / "protocol_averaging.svg")


def stranded():
    worlds = {
        "nothing lost": Links(),
        "30 % in doubt": Links(doubt=0.3),
        "30 % lost silently": Links(silent=0.3),
    }
    print("\n| stranded mass, largest over time | 100 peers (the paper's) | 1,000 peers |")
    print("|---|---|---|")
    figure, axes = canvas(1, 2, height=3.2, sharey=True)
    for (label, links), colour, style in zip(worlds.items(), COLOURS[2:], STYLES[2:], strict=True):
        traces = [paper("keep", 1, links, peers).run(60, 2) for peers in (100, 1000)]
        for axis, trace in zip(axes, traces, strict=True):
            axis.plot(trace.times, trace.stranded, style, color=colour, label=label)
        print(f"| {label} | {max(traces[0].stranded):.1%} | {max(traces[1].stranded):.1%} |")
    axes[0].set(xlabel="pseudo-time", ylabel="stranded mass\n(share of what was founded)", ylim=(-0.03, 1.03))
    axes[1].set(xlabel="pseudo-time")
    for axis, peers in zip(axes, (100, 1000), strict=True):
        axis.set_title(f"{peers:,} peers", loc="left")
    legend_below(figure)
    write(figure, PICTURES / "protocol_stranded.svg")


def replay():
    print("\n| the paper's setting with `drop`, pseudo-time | 10 | 20 | 30 | 40 | 50 | 60 |")
    print("|---|---|---|---|---|---|---|")
    traces = [paper("drop", seed).run(60, 10) for seed in range(5)]
    live = [statistics.fmean(column) for column in zip(*(trace.live for trace in traces), strict=True)]
    print("| live mass, mean of 5 seeds | " + " | ".join(f"{share:.3%}" for share in live) + " |")


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    with drawing():
        averaging()
        stranded()
    replay()
