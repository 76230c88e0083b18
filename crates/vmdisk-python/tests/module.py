"""Checks the module, and the examples of the guide, which are files beside the package."""

import json
import pathlib
import pickle
import sys
import threading

import vmdisk

UNSAFE = """<domain type='kvm'><name>web1</name><memory>1</memory><os><type>hvm</type></os><devices>
<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe' io='io_uring'/><source file='/srv/a.img'/>
<target dev='vda' bus='virtio'/></disk></devices></domain>"""
FACTS = '{"schema_version": "1.0", "limits": {"io_uring_disabled": 2}}'


def raised(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except (ValueError, TypeError) as error:
        return error
    raise AssertionError(f"{function} raises nothing")


def rules(report):
    return {found["rule"] for found in report["findings"]}


host = vmdisk.Host.parse(FACTS)
assert json.loads(host.to_json())["limits"]["io_uring_disabled"] == 2
report = vmdisk.lint(UNSAFE, host=host, name="a.xml")
assert {"cache-unsafe", "io-uring-disabled"} <= rules(report), report
assert report["inputs"][0]["path"] == "a.xml"
assert "io-uring-disabled" not in rules(vmdisk.lint(UNSAFE))

text, rest = vmdisk.fix(UNSAFE, host=host)
assert "cache='writeback'" in text and "io='threads'" in text, text
assert rest["summary"]["fixed"] == 2 and "cache-unsafe" not in rules(rest)

text, decisions = vmdisk.decide(UNSAFE.replace(" cache='unsafe' io='io_uring'", ""), host=host)
assert " cache='" in text and decisions["disks"][0]["choices"][0]["reason"], text
assert vmdisk.trace(UNSAFE)["disks"][0]["target"] == "vda"

line, losses = vmdisk.convert(UNSAFE, target="qemu=9.2")
assert "-blockdev" in line and isinstance(losses, list), line
arguments = ["qemu-system-x86_64", "-drive", "file=/srv/my disk.img,if=virtio,cache=unsafe"]
report = vmdisk.lint(arguments)
found = next(found for found in report["findings"] if found["rule"] == "cache-unsafe")
place = slice(found["place"]["start"]["offset"], found["place"]["end"]["offset"])
assert vmdisk.command_line(arguments)[place] == "unsafe", found
assert "<domain" in vmdisk.convert(arguments[:1] + ["-M", "q35", "-drive", "file=/a.img,format=raw,if=virtio"])[0]

error = raised(vmdisk.lint, "<disk>\n <x\n")
assert isinstance(error, vmdisk.Error) and error.start["line"] >= 1 and str(error), error
assert "unknown" in str(raised(vmdisk.lint, UNSAFE, target="quemu=1")) or "quemu" in str(raised(vmdisk.lint, UNSAFE, target="quemu=1"))
assert "policy" in str(raised(vmdisk.lint, UNSAFE, policy="mine"))
assert isinstance(raised(vmdisk.lint, None), TypeError)
assert "JSON" in str(raised(vmdisk.Host.parse, "["))
assert "spec" in str(raised(vmdisk.decide, "version: 1\ndisks: [{raw: {path: /a, size: 1G}}]"))
assert raised(vmdisk.plan, {"version": 1, "disks": [{"qcow2": {"path": "a"}}]})
for nonsense in ["", "\0", "<disk/>\0", "<domain><devices>" + "<disk/>" * 1_000_000 + "</devices></domain>", "<" * 10000, "[" * 10000, "\ud7ff", "<domain/>" * 3]:
    try:
        vmdisk.lint(nonsense)
    except vmdisk.Error:
        pass

# Errors are of one class, with a place; a path and bytes get a clear message.
error = raised(vmdisk.Host.collect, "<disk>\n <x\n")
assert isinstance(error, vmdisk.Error) and error.start["line"] >= 1, error
assert isinstance(raised(vmdisk.Host.parse, "["), vmdisk.Error)
assert "a path: read the file first" in str(raised(vmdisk.lint, pathlib.Path("web1.xml")))
assert "bytes: decode them first" in str(raised(vmdisk.lint, b"<disk/>"))
assert "unknown field `nmae`" in str(raised(vmdisk.lint, UNSAFE, nmae="a.xml"))
assert "did you mean `cache-unsafe`?" in str(raised(vmdisk.lint, UNSAFE, ignore=["cache-unsave"]))

# What a repository decided holds for reports and fixes.
assert "cache-unsafe" in rules(vmdisk.lint(UNSAFE, name="a.xml"))
config = "[[files]]\npaths = ['lab/']\nrules = { cache-unsafe = 'off' }\n"
assert "cache-unsafe" not in rules(vmdisk.lint(UNSAFE, name="lab/a.xml", config=config))
assert "cache='unsafe'" in vmdisk.fix(UNSAFE, name="lab/a.xml", config=config)[0]
broken = raised(vmdisk.lint, UNSAFE, config="[rules]\ncache-unsave = 'off'\n")
assert "cache-unsafe" in str(broken) and broken.start["line"] == 2, broken
assert rules(vmdisk.lint(UNSAFE, select=["data-safety"], min_severity="error")) == {"cache-unsafe"}
found = vmdisk.lint(UNSAFE, rules={"cache-unsafe": "advice"})["findings"]
assert [it["severity"] for it in found if it["rule"] == "cache-unsafe"] == ["advice"]
brief = vmdisk.lint(UNSAFE, brief=True)
assert brief["not_checked"] == [] and brief["summary"] == vmdisk.lint(UNSAFE)["summary"]

# The guests of a host are compared; a report about one of them says that it is not.
pair = {name: UNSAFE.replace("web1", name) for name in ("web1", "web2")}
assert "image-shared-by-guests" in rules(vmdisk.lint_all(pair, host=host))
missed = {it["rule"] for it in vmdisk.lint(pair["web2"], host=host)["not_checked"]}
assert "image-shared-by-guests" in missed, missed
fleet = {"kvm1": host, "kvm2": '{"schema_version": "1.0", "limits": {"io_uring_disabled": 0}}'}
assert "migration-io-uring-differs" in rules(vmdisk.lint(UNSAFE, fleet=fleet))

assert pickle.loads(pickle.dumps(host)).to_json() == host.to_json()
assert vmdisk.Report.__module__ == "vmdisk.types" and "Report" in vmdisk.__all__

# Every key that the types call required is there, and no other key but theirs is.
import typing


def walk(value, kind):
    """Checks a result by the annotations, which are texts for Python 3.9."""
    if isinstance(kind, str):
        required = not kind.startswith("NotRequired[")
        kind = kind if required else kind[len("NotRequired[") : -1]
        kind = kind.replace(" | None", "")
        if kind.startswith("list["):
            for one in value or []:
                walk(one, kind[len("list[") : -1])
        elif value is not None:
            walk(value, getattr(vmdisk.types, kind, None))
    elif getattr(kind, "__origin__", None) is typing.Union:
        names = [it for it in kind.__args__ if getattr(it, "__annotations__", None)]
        fits = [it for it in names if set(it.__annotations__) == set(value)]
        assert fits or not names, (value, kind)
    elif hasattr(kind, "__annotations__") and isinstance(value, dict):
        texts = {name: getattr(it, "__forward_arg__", it) for name, it in kind.__annotations__.items()}
        assert set(value) <= set(texts), (set(value) - set(texts), kind)
        for name, text in texts.items():
            assert name in value or text.startswith("NotRequired["), (name, kind)
            if name in value:
                walk(value[name], text)


for report in (rest, brief, vmdisk.lint_all(pair, host=host), vmdisk.lint(UNSAFE, fleet=fleet)):
    walk(report, vmdisk.Report)
walk(decisions, vmdisk.Decisions)
walk(vmdisk.trace(UNSAFE, host=host), vmdisk.Trace)

# Threads share a host, and get equal reports.
expected, found = vmdisk.lint(UNSAFE, host=host), []
threads = [threading.Thread(target=lambda: found.extend(vmdisk.lint(UNSAFE, host=host) for _ in range(20))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == 160 and all(report == expected for report in found)

import define
import plan_disks


class Connection:
    def defineXML(self, xml):
        return xml


image = pathlib.Path("a.img").resolve()
image.write_bytes(bytes(1 << 20))
xml = UNSAFE.replace("/srv/a.img", str(image)).replace(" io='io_uring'", "")
try:
    define.define(Connection(), xml)
    raise AssertionError("an unsafe guest is defined")
except define.Refused as refused:
    assert "cache-unsafe" in str(refused), refused
safe = xml.replace("cache='unsafe'", "cache='writeback'")
assert define.define(Connection(), safe) == safe

script = plan_disks.plan_disks(["web1", "web2"])
assert "/srv/web1.qcow2" in script and "/srv/web2.qcow2" in script, script
plan = vmdisk.plan("version: 1\ndisks: [{raw: {path: /srv/a.img, size: 1G}}]")
assert plan["xml"].count("<disk ") == 1 and "-blockdev" in plan["argv"], plan
changed = vmdisk.plan("version: 1\ndisks: [{raw: {path: /srv/a.img, size: 1G}, serial: one}]", existing=plan["xml"])
assert [it["kind"] for it in changed["changes"]] == ["options"] and not changed["unchanged"], changed
print("module is as documented", *sys.version_info[:2])
