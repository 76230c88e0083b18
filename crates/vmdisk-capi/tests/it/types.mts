import { load, VmdiskError, type ReportFinding, type Report } from "vmdisk";

declare const console: { log(...words: unknown[]): void };

const vmdisk = await load();
const report: Report = vmdisk.lint("<disk/>", { target: "qemu=9.2", policy: "lab", host: vmdisk.host("{}") });
const words = (found: ReportFinding): string => `${found.rule}: ${found.place.start.line}: ${found.fix?.edits[0].text}`;
report.findings.map(words).forEach((line) => console.log(line));
try {
  const { text, decisions } = vmdisk.decide("<disk/>");
  console.log(text, decisions.disks[0].choices[0].reason, vmdisk.convert(text, { target: "qemu=9.2" }).losses.length);
} catch (error) {
  if (error instanceof VmdiskError) console.log(error.message, error.start?.line);
}
