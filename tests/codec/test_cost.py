"""The paper's sizes come out of its formula."""

import pytest

from pushcen.codec import Centroids, Schema, payload_size
from pushcen.codec.cost import Cost, paper_bytes
from pushcen.models import LeNet, resnet18

TABLE = {  # per push to ten receivers, MB, from the paper's Table 2 and its table over K
    "lenet": (lambda: LeNet(10), {8: 0.976, 16: 1.298, 32: 1.622, None: 10.27}),
    "resnet18, 100 classes": (lambda: resnet18(100), {8: 48.70, 16: 62.51, 32: 76.33, None: 449.11}),
    "resnet18, 200 classes": (lambda: resnet18(200), {8: 48.89, 16: 62.77, 32: 76.65, None: 451.16}),
}


@pytest.mark.parametrize("clusters", [8, 16, 32, None])
@pytest.mark.parametrize("row", TABLE)
def test_every_cell_of_the_papers_tables_comes_out(row, clusters):
    make, cells = TABLE[row]
    digits = len(str(cells[clusters]).split(".")[1])
    assert round(10 * paper_bytes(make(), clusters) / 1e6, digits) == pytest.approx(
        cells[clusters], abs=1.01 * 10**-digits
    )


@pytest.mark.parametrize("row", TABLE)
@pytest.mark.parametrize("clusters", [8, 16, 32])
def test_what_is_really_sent_is_no_longer(row, clusters):
    model = TABLE[row][0]()
    real = payload_size(Schema.of(model), Centroids(clusters))
    assert real <= paper_bytes(model, clusters) + 64
    if "resnet" in row:
        assert real < 0.95 * paper_bytes(model, clusters)


def test_the_compression_ratio_tends_to_its_limit():
    few, many = (Cost(weights=n, clusters=32, samples=480, epochs=1, iterations=3) for n in (1000, 10_000_000))
    assert many.limit == 5 / 32
    assert few.ratio - few.limit == pytest.approx(31 / 1000)
    assert many.ratio == pytest.approx(many.limit, rel=1e-4)
