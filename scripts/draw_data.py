"""Draw docs/pictures/data_digits.svg: who got what of scikit-learn's digits. `make figures` runs it."""

import pathlib

from pushcen.data import Dirichlet, draw, load, split

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"


def main():
    PICTURES.mkdir(exist_ok=True)
    draw(split(load("digits"), 30, Dirichlet(alpha=0.4)), PICTURES / "data_digits.svg")


if __name__ == "__main__":
    main()
