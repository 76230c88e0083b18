"""Reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.

Texts are libvirt's XML, a QEMU command line or a spec; a list of arguments is a command line, and places in results count in
`vmdisk.command_line(arguments)`. Results are dictionaries in the shapes of `vmdisk schema`. Threads run in parallel.
"""

import json

from ._vmdisk import Host, __version__, call as _call, command_line

__all__ = ["Error", "Host", "command_line", "convert", "decide", "fix", "lint", "plan", "trace"]


class Error(ValueError):
    """A text that cannot be read, a wrong option, or something impossible; with the place in the text, if there is one."""

    def __init__(self, message, help=None, start=None, end=None):
        super().__init__(message)
        self.help = help
        self.start = start
        self.end = end


def _result(function, text, host=None, **options):
    text = text if isinstance(text, str) else command_line(list(text))
    options = {name: value for name, value in options.items() if value is not None}
    result = json.loads(_call(function, text, host, json.dumps(options)))
    if "error" in result:
        raise Error(**result["error"])
    return result


def lint(text, *, host=None, target=None, policy=None, name=None):
    """The report of `vmdisk lint --format json`."""
    return _result("lint", text, host, target=target, policy=policy, name=name)


def fix(text, *, host=None, target=None, policy=None, name=None, unsafe=False):
    """The fixed text, and the report of what remains."""
    result = _result("fix", text, host, target=target, policy=policy, name=name, unsafe_fixes=unsafe)
    return result["text"], result["report"]


def decide(text, *, host=None, target=None, policy=None, name=None):
    """The text with the options that its disks leave open, and the decisions of `vmdisk decide --format json`."""
    result = _result("decide", text, host, target=target, policy=policy, name=name)
    return result["text"], result["decisions"]


def trace(text, *, host=None, target=None, policy=None, name=None):
    """The I/O paths of `vmdisk trace --format json`."""
    return _result("trace", text, host, target=target, policy=policy, name=name)


def plan(spec, *, host=None, target=None):
    """The guest of a spec, a text or a dictionary: `xml`, `argv`, `script` and `choices`."""
    return _result("plan", spec if isinstance(spec, str) else json.dumps(spec), host, target=target)


def convert(text, *, target=None):
    """The QEMU command line of libvirt's XML, or the reverse, and what is not carried over."""
    result = _result("convert", text, target=target)
    return result["text"], result["losses"]
