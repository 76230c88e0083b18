"""Reports the findings of vmdisk as warnings of virt-lint.

virt-lint runs this file with the object `vl`. Install it in a subdirectory of virt-lint's Python validators:

    install -D check_vmdisk.py /usr/share/virt-lint/validators_python/disks/check_vmdisk.py

Environment variables: VMDISK_PROGRAM names the program (default: `vmdisk`), VMDISK_FACTS one or more facts files of
the host, separated by colons. Without facts, rules about the host are not checked, and one notice says so.
"""

import json
import os
import subprocess

# virt-lint: an error is a domain that does not start or loses data, a warning is suboptimal, a notice is a tweak.
levels = {
    "error": vl.WarningLevel_Error,
    "warning": vl.WarningLevel_Warning,
    "advice": vl.WarningLevel_Notice,
    "pedantic": vl.WarningLevel_Notice,
}

# The text of the domain that virt-lint read.
domain = vl.dom_xpath("/*")
command = [os.environ.get("VMDISK_PROGRAM", "vmdisk"), "lint", "-", "--format", "json", "--stdin-filename", "domain.xml"]
for facts in filter(None, os.environ.get("VMDISK_FACTS", "").split(":")):
    command += ["--facts", facts]
run = subprocess.run(command, input=domain[0] if domain else "", capture_output=True, text=True, check=False)
if run.returncode not in (0, 1):
    raise RuntimeError(f"vmdisk: {run.stderr.strip() or run.stdout.strip()}")

report = json.loads(run.stdout)
for finding in report["findings"]:
    node = finding["subject"] == "host"
    text = f"{finding['title']} [{finding['rule']}]"
    if finding["help"]:
        text += f"; {finding['help']}"
    vl.add_warning(
        vl.WarningDomain_Node if node else vl.WarningDomain_Domain,
        levels.get(finding["severity"], vl.WarningLevel_Warning),
        text,
    )
unchecked = sorted({missed["rule"] for missed in report["not_checked"]})
if unchecked:
    text = f"vmdisk did not check {len(unchecked)} rules for lack of facts: {', '.join(unchecked)}"
    vl.add_warning(vl.WarningDomain_Node, vl.WarningLevel_Notice, text)
