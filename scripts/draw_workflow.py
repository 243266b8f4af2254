"""Draw docs/pictures/workflow.svg: one compute event of PushCen, from message to message. `make figures` runs it."""

import pathlib

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from pushcen.drawing import BLUE, GREEN, GREY, INK, ORANGE, canvas, drawing, write

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"

WIDTH, HEIGHT, TOP, BOTTOM = 2.5, 1.5, 3.3, 0.6
BOXES = {  # x, y, colour, title, text
    "in": (-0.4, TOP, GREY, "neighbours push", "centroids V, indices A,\ntotal mass of the link"),
    "box": (2.8, TOP, BLUE, "mailbox", "newest of each sender,\nat most L; what makes room\nis folded, not lost"),
    "merge": (
        6.0,
        TOP,
        BLUE,
        "merge by mass",
        "w and G: means of own and\nreceived, weighted by mass;\nmass: their sum",
    ),
    "cluster": (9.2, TOP, ORANGE, "cluster", "K centroids, one at zero:\nanchor G[A], and a mask\nof what is pruned"),
    "train": (9.2, BOTTOM, GREEN, "train on own data", "loss + lambda ‖w - anchor‖²,\npruned weights stay zero"),
    "encode": (6.0, BOTTOM, ORANGE, "cluster again, encode", "V and A, 5 bits a weight;\nown weights stay in full"),
    "split": (2.8, BOTTOM, BLUE, "split the mass", "k receivers and itself:\nS / (k + 1) each; the\nremainder stays"),
    "out": (-0.4, BOTTOM, GREY, "push", "to k peers that are\nonline; nobody waits"),
}
ARROWS = [("in", "box"), ("box", "merge"), ("merge", "cluster"), ("cluster", "train"), ("train", "encode")]
ARROWS += [("encode", "split"), ("split", "out")]


def box(axes, x, y, colour, title, text):
    shape = FancyBboxPatch(
        (x, y), WIDTH, HEIGHT, boxstyle="round,pad=0.06,rounding_size=0.12", fc=colour + "18", ec=colour, lw=1.4
    )
    axes.add_patch(shape)
    axes.text(x + WIDTH / 2, y + HEIGHT - 0.06, title, ha="center", va="top", fontsize=10.5, weight="bold", color=INK)
    axes.text(x + WIDTH / 2, y + HEIGHT / 2 - 0.2, text, ha="center", va="center", fontsize=8.6, color=INK)


def arrow(axes, one, other):
    (ax, ay), (bx, by) = BOXES[one][:2], BOXES[other][:2]
    middle = ay + HEIGHT / 2
    if ax == bx:
        start, end = (ax + WIDTH / 2, ay - 0.08), (bx + WIDTH / 2, by + HEIGHT + 0.08)
    elif bx > ax:
        start, end = (ax + WIDTH + 0.08, middle), (bx - 0.08, middle)
    else:
        start, end = (ax - 0.08, middle), (bx + WIDTH + 0.08, middle)
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=15, lw=1.5, color=INK))


def picture():
    figure, axes = canvas(width=11.4, height=4.9)
    axes.add_patch(
        FancyBboxPatch(
            (2.5, 0.2), 9.5, 5.0, boxstyle="round,pad=0.1,rounding_size=0.2", fc="none", ec=GREY, lw=1, ls="--"
        )
    )
    axes.text(2.65, 5.22, "client i: model w, mass s, dictionary G", fontsize=9.5, color=GREY, va="top")
    axes.text(7.25, 2.7, "a compute event: when the client is ready, not when others are", ha="center", fontsize=9.5,
              style="italic", color=GREY)  # fmt: skip
    for spec in BOXES.values():
        box(axes, *spec)
    for one, other in ARROWS:
        arrow(axes, one, other)
    axes.set(xlim=(-0.6, 12.3), ylim=(-0.05, 5.45))
    axes.axis("off")
    return figure


def main():
    PICTURES.mkdir(exist_ok=True)
    with drawing():
        figure = picture()
    write(figure, PICTURES / "workflow.svg")


if __name__ == "__main__":
    main()
