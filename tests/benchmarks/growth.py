"""Draw how the judging of a snapshot grows: ``python -m tests.benchmarks.growth [--scale X]``.

Scale 1 is 1, 2, 5 and 10 million sales, in snapshots made for it, on DuckDB within 16 GB. The page
about snapshots shows the picture.
"""

import argparse
from pathlib import Path

from tests.benchmarks.bench_snapshot import growth

_SIZES = (1_000_000, 2_000_000, 5_000_000, 10_000_000)
_PICTURE = Path(__file__).with_name("growth.svg")
_WIDTH, _HEIGHT, _LEFT, _TOP = 480, 220, 60, 50


def main() -> None:
    """Measure each size and write the picture."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.growth", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the work, 1 by default")
    scale = parser.parse_args().scale
    found = {}
    for sales in (round(size * scale) for size in _SIZES):
        timed = growth(sales)
        found[sales] = timed.cpu
        print(f"{sales:>12,} sales{timed.seconds:>8.2f} s{timed.cpu:>8.2f} s of CPU", flush=True)
        _PICTURE.write_text(picture(found), encoding="utf-8")  # after each, so that nothing measured is lost


def picture(found: dict[int, float]) -> str:
    """Return the measurements as SVG: one point a size, each with its numbers."""
    most, longest = max(found), max(found.values())
    points = [
        (_LEFT + _WIDTH * sales / most, _TOP + _HEIGHT * (1 - seconds / longest), sales, seconds)
        for sales, seconds in found.items()
    ]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y, *_ in points)
    base = _TOP + _HEIGHT
    dots = "".join(
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="#1d4ed8"/>'
        f'<text x="{x:.0f}" y="{y - 10:.0f}" text-anchor="middle">{seconds:.1f} s</text>'
        f'<text x="{x:.0f}" y="{base + 20:.0f}" text-anchor="middle">{sales:,}</text>\n'
        for x, y, sales, seconds in points
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + 130}" height="{base + 50}" '
        'font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{_LEFT}" y="20">CPU seconds to judge a snapshot on DuckDB within 16 GB, by sales</text>\n'
        f'<polyline points="{_LEFT},{base} {line}" fill="none" stroke="#1d4ed8"/>\n'
        f'<path d="M{_LEFT} {_TOP}V{base}H{_LEFT + _WIDTH}" fill="none" stroke="#6b7280"/>\n'
        f"{dots}</svg>\n"
    )


if __name__ == "__main__":
    main()
