"""Writes a wheel with a program and a module: a zip with both, a list of its files and three files about it."""

import base64
import hashlib
import os
import re
import sys
import zipfile

wheel, binary, licences, readme, version, tag, summary, home, *module = sys.argv[1:]
info = f"vmdisk-{version}.dist-info"
with open(readme, encoding="utf-8") as file:
    # On the page of the package index, paths lead nowhere.
    description = re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({home}/blob/main/\1)", file.read())
    description = re.sub(r'(src(?:set)?=")(?!https?:)', rf"\1{home}/raw/main/", description)
texts = {name: open(os.path.join(licences, name), encoding="utf-8").read() for name in sorted(os.listdir(licences))}
metadata = [
    "Metadata-Version: 2.4",
    "Name: vmdisk",
    f"Version: {version}",
    f"Summary: {summary}",
    f"Project-URL: Repository, {home}",
    f"Project-URL: Documentation, {home}/tree/main/docs",
    f"Project-URL: Changelog, {home}/blob/main/CHANGELOG.md",
    f"Project-URL: Issues, {home}/issues",
    "Keywords: qemu,libvirt,kvm,virtualization,linter,storage",
    "Classifier: Environment :: Console",
    "Classifier: Intended Audience :: System Administrators",
    "Classifier: Operating System :: POSIX :: Linux",
    "Classifier: Programming Language :: Rust",
    "Classifier: Topic :: Software Development :: Quality Assurance",
    "Classifier: Topic :: System :: Systems Administration",
    "License-Expression: MIT OR Apache-2.0",
    *(f"License-File: {name}" for name in texts),
    "Requires-Python: >=3.9",
    "Description-Content-Type: text/markdown",
    "",
    description,
]
python, abi, platforms = tag.split("-")
tags = "Wheel-Version: 1.0\nGenerator: vmdisk\nRoot-Is-Purelib: false\n" + "".join(
    f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split(".")
)
with open(binary, "rb") as file:
    files = [(f"vmdisk-{version}.data/scripts/vmdisk", file.read(), 0o100755)]
if module:
    compiled, package = module
    parts = [("_vmdisk.abi3.so", compiled), *((name, os.path.join(package, name)) for name in sorted(os.listdir(package)))]
    for name, path in parts:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                files.append((f"vmdisk/{name}", file.read(), 0o100644))
files.append((f"{info}/METADATA", "\n".join(metadata).encode(), 0o100644))
files.append((f"{info}/WHEEL", tags.encode(), 0o100644))
files.extend((f"{info}/licenses/{name}", text.encode(), 0o100644) for name, text in texts.items())


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


record = [f"{name},sha256={digest(data)},{len(data)}" for name, data, _ in files]
record.append(f"{info}/RECORD,,")
files.append((f"{info}/RECORD", ("\n".join(record) + "\n").encode(), 0o100644))
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
    for name, data, mode in files:
        # A date that is always the same, so that the same files are the same wheel.
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = mode << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        out.writestr(entry, data)
