"""A made-up table of patients, with every kind of column, as text."""

import csv
import io

import numpy as np

HOSPITALS = ("north", "south", "west")


def rows(count=120, seed=0):
    """Return dicts; the outcome depends on age, sex and ward, the stay in days on age."""
    draw = np.random.default_rng(seed)
    found = []
    for at in range(count):
        age, sex, ward = round(draw.normal(55, 15), 1), "fm"[at % 2], f"w{draw.integers(20):02}"
        ill = (age > 55) != (sex == "m" and ward > "w10")
        found.append(
            {
                "age": "" if at % 10 == 3 else age,
                "sex": sex,
                "ward": ward,
                "smokes": str(bool(at // 3 % 2)),
                "admitted": f"2020-0{1 + at % 9}-1{at % 7}",
                "hospital": HOSPITALS[at % 3],
                "outcome": "ill" if ill else "well",
                "days": round(5 + age / 10 + draw.normal(0, 0.3), 2),
            }
        )
    return found


def write(path, found=None, delimiter=","):
    found = rows() if found is None else found
    text = io.StringIO()
    writer = csv.DictWriter(text, list(found[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(found)
    path.write_text(text.getvalue(), "utf-8")
    return path
