"""Draw docs/pictures/one_event.svg: one message from A to B, in both worlds. `make figures` runs it."""

import pathlib

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from pushcen.drawing import BLUE, GREEN, GREY, INK, ORANGE, canvas, drawing, write

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
WIDTH, HEIGHT = 3.1, 1.15
COLUMNS = (0.0, 3.9, 7.8)
ROWS = {"sim": 4.6, "both": 2.5, "grpc": 0.4}
BOXES = [  # column, row, colour, title, text
    (0, "sim", BLUE, "simulation/engine.py", "Engine.train: the queue says\nthat A's compute time ends"),
    (1, "sim", BLUE, "simulation/network.py", "SimulatedNetwork.send, deliver:\nlate, twice, or lost"),
    (2, "sim", BLUE, "simulation/executors/", "Host.run: the work itself,\non any thread or machine"),
    (0, "both", ORANGE, "client.py, A", "Client.begin, step, finish"),
    (1, "both", GREY, "an envelope", "total mass of the link, and\nlearning + codec: a payload"),
    (2, "both", GREEN, "client.py, B", "Client.receive; begin, step:\nA's message is merged by mass"),
    (0, "grpc", BLUE, "runtime/trainer.py", "Trainer.event: trains, commits\n(durable.py), then sends"),
    (1, "grpc", BLUE, "runtime/channels.py", "Channels.send: header, A's\nsigned word, payload, in pieces"),
    (2, "grpc", BLUE, "runtime/gate.py, service.py", "who calls, and every byte, is\nchecked; PeerNode.take"),
]
ARROWS = [  # from column and row, to column and row
    ((0, "sim"), (0, "both")), ((0, "both"), (1, "both")), ((1, "both"), (2, "both")), ((1, "sim"), (1, "both")),
    ((2, "sim"), (2, "both")), ((0, "grpc"), (0, "both")), ((1, "grpc"), (1, "both")), ((2, "grpc"), (2, "both")),
]  # fmt: skip


def picture():
    figure, axes = canvas(width=10.4, height=5.2)
    for column, row, colour, title, text in BOXES:
        x, y = COLUMNS[column], ROWS[row]
        style = "round,pad=0.06,rounding_size=0.12"
        axes.add_patch(FancyBboxPatch((x, y), WIDTH, HEIGHT, boxstyle=style, fc=colour + "18", ec=colour, lw=1.4))
        middle = x + WIDTH / 2
        axes.text(middle, y + HEIGHT - 0.06, title, ha="center", va="top", fontsize=10.5, weight="bold", color=INK)
        axes.text(middle, y + HEIGHT / 2 - 0.2, text, ha="center", va="center", fontsize=9, color=INK)
    for (column, row), (to, into) in ARROWS:
        if row == into:
            height = ROWS[row] + HEIGHT / 2
            ends = (COLUMNS[column] + WIDTH + 0.1, height), (COLUMNS[to] - 0.1, height)
        else:
            x, above = COLUMNS[column] + WIDTH / 2, ROWS[row] > ROWS[into]
            ends = (
                (x, ROWS[row] + (-0.1 if above else HEIGHT + 0.1)),
                (x, ROWS[into] + (HEIGHT + 0.1 if above else -0.1)),
            )
        axes.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=15, lw=1.5, color=INK))
    for row, text in (("sim", "in the simulator"), ("both", "in both"), ("grpc", "over gRPC")):
        axes.text(-0.35, ROWS[row] + HEIGHT / 2, text, rotation=90, ha="center", va="center", fontsize=10, color=GREY)
    axes.set(xlim=(-0.7, 11.1), ylim=(0.1, 6.0))
    axes.axis("off")
    return figure


def main():
    PICTURES.mkdir(exist_ok=True)
    with drawing():
        figure = picture()
    write(figure, PICTURES / "one_event.svg")
    return figure


if __name__ == "__main__":
    main()
