"""The licence of every package of the environment, as it declares it: ``make licences``."""

from __future__ import annotations

from importlib.metadata import Distribution, distributions


def licence_of(package: Distribution) -> str:
    """The declared expression, else the classifiers, else the first line of the text."""
    meta = package.metadata
    if (expression := meta.get("License-Expression")) is not None:
        return expression
    classifiers = [text for text in meta.get_all("Classifier", []) if text.startswith("License ::")]
    named = "; ".join(text.rpartition(" :: ")[2] for text in classifiers)
    return named or (meta.get("License") or "").strip().partition("\n")[0] or "not declared"


def main() -> None:
    """Print one line for each package."""
    packages = {package.metadata["Name"]: package for package in distributions()}
    for name in sorted(packages, key=str.lower):
        print(f"{name:<36}  {packages[name].version:<16}  {licence_of(packages[name])}")


if __name__ == "__main__":
    main()
