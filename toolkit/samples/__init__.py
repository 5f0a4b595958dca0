"""Synthetic sample data, made from a seed: realistic, and about nobody real."""

from toolkit.samples.dataset import (
    DEFAULT_CLIENTS,
    DEFAULT_SALES,
    DEFAULT_SEED,
    Samples,
    SampleSale,
    make_samples,
)
from toolkit.samples.folder import write_sales, write_samples

__all__ = [
    "DEFAULT_CLIENTS",
    "DEFAULT_SALES",
    "DEFAULT_SEED",
    "SampleSale",
    "Samples",
    "make_samples",
    "write_sales",
    "write_samples",
]
