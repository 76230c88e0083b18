"""Reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.

Texts are libvirt's XML, a QEMU command line or a spec; a list of arguments is a command line, and places in results count in
`vmdisk.command_line(arguments)`. Results are dictionaries in the shapes of `vmdisk print schema`. Threads run in parallel.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import types
from ._vmdisk import Host, __version__, call as _call, command_line
from .types import *

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["Error", "Host", "command_line", "convert", "decide", "fix", "lint", "lint_all", "plan", "trace"]
__all__ += types.__all__

Text = Union[str, Sequence[str]]


class Error(ValueError):
    """A text that cannot be read, a wrong option, or something impossible; with the place in the text, if there is one."""

    def __init__(
        self,
        message: str,
        help: str | None = None,
        start: ReportPosition | None = None,
        end: ReportPosition | None = None,
    ) -> None:
        super().__init__(message)
        self.help = help
        self.start = start
        self.end = end


def _text(text: Text) -> str:
    if isinstance(text, (bytes, bytearray, os.PathLike)):
        kind = "a path: read the file" if isinstance(text, os.PathLike) else "bytes: decode them"
        raise TypeError(f"expected the text of a guest or the arguments of a command line, found {kind} first")
    return text if isinstance(text, str) else command_line(list(text))


def _result(function: str, text: str, host: Host | None, options: Mapping[str, Any]) -> Any:
    options = {name: value for name, value in options.items() if value is not None}
    if fleet := options.get("fleet"):
        options["fleet"] = {name: it if isinstance(it, str) else it.to_json() for name, it in fleet.items()}
    result = json.loads(_call(function, text, host, json.dumps(options)))
    if "error" in result:
        raise Error(**result["error"])
    return result


def lint(text: Text, *, host: Host | None = None, **options: Unpack[Options]) -> Report:
    """The report of `vmdisk lint --format json`. Rules about the other guests of the host are among those not checked."""
    report: Report = _result("lint", _text(text), host, options)
    return report


def lint_all(inputs: Mapping[str, Text], *, host: Host | None = None, **options: Unpack[Options]) -> Report:
    """The report about all guests of one host, by their names, which are compared."""
    listed = [{"name": name, "text": _text(text)} for name, text in inputs.items()]
    report: Report = _result("lint_all", json.dumps(listed), host, options)
    return report


def fix(
    text: Text, *, host: Host | None = None, unsafe: bool = False, **options: Unpack[Options]
) -> tuple[str, Report]:
    """The fixed text, and the report of what remains."""
    result = _result("fix", _text(text), host, {**options, "unsafe_fixes": unsafe})
    return result["text"], result["report"]


def decide(text: Text, *, host: Host | None = None, **options: Unpack[Options]) -> tuple[str, Decisions]:
    """The text with the options that its disks leave open, and the decisions of `vmdisk decide --format json`."""
    result = _result("decide", _text(text), host, options)
    return result["text"], result["decisions"]


def trace(text: Text, *, host: Host | None = None, **options: Unpack[Options]) -> Trace:
    """The I/O paths of `vmdisk trace --format json`."""
    traced: Trace = _result("trace", _text(text), host, options)
    return traced


def plan(
    spec: str | dict[str, Any], *, host: Host | None = None, target: str | None = None, existing: str | None = None
) -> Plan:
    """The guest of a spec, a text or a dictionary: `xml`, `argv`, `script` and `choices`; `changes` and `unchanged` of the guest
    `existing`, in libvirt's XML."""
    text = spec if isinstance(spec, str) else json.dumps(spec)
    planned: Plan = _result("plan", text, host, {"target": target, "existing": existing})
    return planned


def convert(text: Text, *, target: str | None = None) -> tuple[str, list[str]]:
    """The QEMU command line of libvirt's XML, or the reverse, and what is not carried over."""
    result = _result("convert", _text(text), None, {"target": target})
    return result["text"], result["losses"]
