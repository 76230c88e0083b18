// Checks the package.
import assert from "node:assert/strict";
import { load, commandLine, indexOf, VmdiskError } from "vmdisk";

const UNSAFE = `<domain type='kvm'><name>web1</name><memory>1</memory><os><type>hvm</type></os><devices>
<disk type='file' device='disk'><driver name='qemu' type='raw' cache='unsafe' io='io_uring'/><source file='/srv/a.img'/>
<target dev='vda' bus='virtio'/></disk></devices></domain>`;
const FACTS = '{"schema_version": "1.0", "limits": {"io_uring_disabled": 2}}';
const rules = (report) => report.findings.map((found) => found.rule);

const vmdisk = await load();
assert.match(vmdisk.version, /^\d+\.\d+\.\d+$/);
const host = vmdisk.host(FACTS);
const report = vmdisk.lint(UNSAFE, { host, name: "a.xml" });
assert(rules(report).includes("cache-unsafe") && rules(report).includes("io-uring-disabled"));
assert.equal(report.inputs[0].path, "a.xml");
assert(!rules(vmdisk.lint(UNSAFE)).includes("io-uring-disabled"));

const fixed = vmdisk.fix(UNSAFE, { host });
assert(fixed.text.includes("cache='writeback'") && fixed.text.includes("io='threads'"));
assert.equal(fixed.report.summary.fixed, 2);
const open = UNSAFE.replace(" cache='unsafe' io='io_uring'", "");
const decided = vmdisk.decide(open, { host });
assert(decided.text.includes(" cache='") && decided.decisions.disks[0].choices[0].reason);
assert.equal(vmdisk.trace(UNSAFE).disks[0].target, "vda");
const { text: line, losses } = vmdisk.convert(UNSAFE, { target: "qemu=9.2" });
assert(line.includes("-blockdev") && Array.isArray(losses));
assert(vmdisk.convert(line).text.includes("<domain"));
const SPEC = "version: 1\nguest: {name: web1}\ndisks: [{raw: {path: /srv/a.img, size: 1G}}]";
const planned = vmdisk.plan(SPEC);
assert(planned.argv.includes("-blockdev") && !planned.changes.length);
const { changes, unchanged } = vmdisk.plan(SPEC.replace("}}]", "}, serial: one}]"), { existing: planned.xml });
assert.deepEqual([changes[0].kind, changes[0].argv[1], changes.length, unchanged.length], ["options", "define", 1, 0]);

const words = commandLine(["qemu-system-x86_64", "-drive", "file=/srv/it's my disk.img,if=virtio,cache=unsafe"]);
const { start, end } = vmdisk.lint(words).findings.find((found) => found.rule === "cache-unsafe").place;
assert.equal(words.slice(start.offset, end.offset), "unsafe");

// JavaScript counts UTF-16, reports count UTF-8.
const wide = UNSAFE.replace("web1", "\u{1f4be}\u00e9");
const at = vmdisk.lint(wide).findings.find((found) => found.rule === "cache-unsafe").place;
const cut = wide.slice(indexOf(wide, at.start.offset), indexOf(wide, at.end.offset));
assert(cut.includes("unsafe") && wide.slice(at.start.offset, at.end.offset) !== cut, cut);

// The guests of a host are compared, and a configuration decides.
const pair = ["web1", "web2"].map((name) => ({ name, text: UNSAFE.replace("web1", name) }));
assert(rules(vmdisk.lintAll(pair, { host })).includes("image-shared-by-guests"));
assert(!rules(vmdisk.lint(UNSAFE, { config: "[rules]\ncache-unsafe = 'off'\n" })).includes("cache-unsafe"));

const refused = (run) => {
  try {
    run();
  } catch (error) {
    return error;
  }
  assert.fail("nothing is thrown");
};
const broken = refused(() => vmdisk.lint("<disk>\n <x\n"));
assert(broken instanceof VmdiskError && broken.start.line >= 1);
assert.match(refused(() => vmdisk.lint(UNSAFE, { target: "quemu=1" })).message, /quemu/);
assert.match(refused(() => vmdisk.lint(UNSAFE, { policy: "mine" })).message, /policy/);
assert.match(refused(() => vmdisk.lint(UNSAFE, { polity: "lab" })).message, /unknown field/);
assert.match(refused(() => vmdisk.host("[")).message, /JSON/);
assert.match(refused(() => vmdisk.decide("version: 1\ndisks: [{raw: {path: /a, size: 1G}}]")).message, /spec/);
assert(refused(() => vmdisk.lint(UNSAFE, { host: {} })) instanceof TypeError);
assert(refused(() => vmdisk.lint(null)) instanceof TypeError);
for (const nonsense of ["", "\0", "<".repeat(10000), "[".repeat(10000), "\ud800", "<domain/>".repeat(3), "<a>".repeat(100000)]) {
  try {
    vmdisk.lint(nonsense);
  } catch (error) {
    assert(error instanceof VmdiskError && !error.message.includes("bug"), error.stack);
  }
}
const million = `<domain><devices>${"<disk/>".repeat(1e6)}</devices></domain>`;
assert.match(refused(() => vmdisk.lint(million)).message, /more than 20000 disks/);
// Memory is freed, and hosts whose object is gone, too.
const memory = () => process.memoryUsage().arrayBuffers;
const before = memory();
for (let round = 0; round < 2000; round += 1) vmdisk.lint(UNSAFE, { host });
assert(memory() - before < 20 * 1024 * 1024, `${before} ${memory()}`);
assert.deepEqual(vmdisk.lint(UNSAFE, { host, name: "a.xml" }), report);
console.log("the package is as documented");
