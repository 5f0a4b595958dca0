"""Run as a module: the process that looks at files, with a fault of the toolkit's own in it."""

from toolkit.evidence import inspection


def _fail(path):
    raise TypeError(f"open() got an unexpected keyword argument, for {path}")


if __name__ == "__main__":
    vars(inspection)["inspect_file"] = _fail
    inspection._serve()
