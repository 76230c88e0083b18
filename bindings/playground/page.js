const byId = (id) => document.getElementById(id);
const [field, marks, findings, summary, said] = ["text", "marks", "findings", "summary", "said"].map(byId);

/** An element with these attributes and children; texts are texts. */
function make(name, attributes = {}, ...children) {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children);
  return element;
}

/** A sentence whose words in backticks are code. */
function sentence(text) {
  const part = (it) => (it.length > 1 && it.startsWith("`") ? make("code", {}, it.slice(1, -1)) : it);
  return text.split(/(`[^`]*`)/).map(part);
}

const EXAMPLES = {
  "a domain": `<domain type='kvm'>
  <name>web1</name>
  <memory unit='GiB'>2</memory>
  <vcpu>4</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
  </os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe' io='native'/>
      <source file='/srv/img/web1.img'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
`,
  "a command line": `qemu-system-x86_64 -M q35 -m 2G \\
  -drive file=/srv/img/web1.img,if=virtio,cache=unsafe
`,
  "a spec": `version: 1
name: web1
disks:
  - raw: {path: /srv/img/web1.img, size: 40G}
    cache: unsafe
`,
};

let vmdisk;
let hosts;

/** Indices into the text, by offsets of its bytes. */
function indexer(text) {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder();
  return ({ offset }) => decoder.decode(bytes.subarray(0, offset)).length;
}

function options() {
  const [host, target, policy] = ["host", "target", "policy"].map((id) => byId(id).value);
  return { policy, ...(host && { host: hosts.get(host) }), ...(target && { target }) };
}

/** Replaces the text, in a way that the editor can undo. */
function replace(text) {
  field.focus();
  field.select();
  if (!document.execCommand("insertText", false, text)) field.value = text;
  check();
}

function applied(text, edits) {
  const index = indexer(text);
  const sorted = edits.map(({ start, end, text }) => [index(start), index(end), text]).sort((one, other) => one[0] - other[0]);
  return sorted.reduceRight((out, [start, end, put]) => out.slice(0, start) + put + out.slice(end), text);
}

function show(place) {
  const index = indexer(field.value);
  field.focus();
  field.setSelectionRange(index(place.start), index(place.end));
  field.scrollTop = Math.max(0, (place.start.line - 5) * 19.5);
}

function article(finding) {
  const { severity, rule, title, label, notes, help, fix, place } = finding;
  const at = make("button", { className: "place", onclick: () => show(place) }, `line ${place.start.line}`);
  const list = make("ul", {}, ...notes.map((note) => make("li", {}, ...sentence(note))));
  const mend = make("button", { className: "fix", onclick: () => replace(applied(field.value, fix.edits)) });
  mend.append(fix?.applicability === "safe" ? "Apply the fix" : "Apply the fix, which has a trade-off");
  return make("article", { className: severity },
    make("p", {}, make("b", {}, ...sentence(title))),
    make("p", { className: "rule" }, `${severity} · ${rule} · `, at),
    label ? make("p", {}, ...sentence(label)) : "",
    notes.length ? list : "",
    help ? make("p", {}, ...sentence(help)) : "",
    fix?.edits ? mend : "");
}

/** The text again, beneath the editor, with lines under what is found. */
function mark(text, all) {
  const index = indexer(text);
  const spans = all.map(({ place, severity }) => [index(place.start), index(place.end), severity]).sort((one, other) => one[0] - other[0]);
  const parts = [];
  let done = 0;
  for (const [start, end, severity] of spans) {
    if (start < done || end <= start) continue;
    // A long place is marked by its first line.
    const line = text.indexOf("\n", start);
    const last = line >= 0 && line < end ? line : end;
    parts.push(text.slice(done, start), make("mark", { className: severity }, text.slice(start, last)));
    done = last;
  }
  marks.replaceChildren(...parts, text.slice(done), "\n");
}

function step(it, found) {
  const serious = found.find(({ severity }) => severity === "error") ?? found[0];
  const properties = it.properties.map(({ name, value }) => `${name} ${value}`).join(" · ");
  const effects = it.effects.map(({ operation, outcome, text }) => make("span", { className: outcome, title: text }, `${operation} ${outcome}`));
  return make("div", { className: `step ${serious?.severity ?? ""}` },
    make("div", {}, make("span", { className: "layer" }, it.layer), make("b", {}, it.name)),
    properties ? make("div", { className: "properties" }, properties) : "",
    make("div", { className: "effects" }, ...effects));
}

function disk({ target, steps, loss, findings }) {
  const drawn = steps.map((it, nth) => step(it, findings.filter((found) => found.step === nth)));
  const lost = loss.statements.map(({ text }) => make("li", {}, ...sentence(text)));
  return make("div", { className: "disk" }, make("h2", {}, `I/O path of ${target}`), ...drawn, make("ul", {}, ...lost));
}

/** Runs a call; its error is shown as a finding. */
function tried(call) {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof VmdiskError)) throw error;
    return { error };
  }
}

function check() {
  const text = field.value;
  const report = tried(() => vmdisk.lint(text, options()));
  const unchecked = byId("unchecked");
  unchecked.hidden = true;
  byId("paths").replaceChildren();
  if (report.error) {
    const { message, help, start, end } = report.error;
    const place = { start: start ?? { offset: 0, line: 1 }, end: end ?? { offset: 0, line: 1 } };
    const finding = { severity: "error", rule: "not readable", title: message, notes: [], help, place };
    summary.textContent = text.trim() ? "This cannot be checked" : "Paste a domain, a command line or a spec";
    findings.replaceChildren(...(text.trim() ? [article(finding)] : []));
    mark(text, [finding]);
    return;
  }
  const order = ["error", "warning", "advice", "pedantic"];
  const found = report.findings.sort((one, other) => order.indexOf(one.severity) - order.indexOf(other.severity));
  const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const rules = new Map(report.not_checked.map((it) => [it.rule, it]));
  summary.textContent = `${count(found.length, "finding")}, ${count(rules.size, "rule")} not checked`;
  const clean = make("article", { className: "clean" }, "What was checked is clean.");
  findings.replaceChildren(...(found.length ? found.map(article) : [clean]));
  unchecked.hidden = rules.size === 0;
  unchecked.querySelector("summary").textContent = `${count(rules.size, "rule")} not checked`;
  const reasons = [...rules.values()].map(({ rule, what, why }) => make("li", {}, `${rule}: ${what}: ${why}`));
  unchecked.querySelector("ul").replaceChildren(...reasons);
  mark(text, found);
  const traced = tried(() => vmdisk.trace(text, options()));
  if (!traced.error) byId("paths").replaceChildren(...traced.disks.map(disk));
}

const through = async (stream, bytes) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
const fromBase64 = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (it) => it.charCodeAt(0));

async function link() {
  const state = [field.value, ...["host", "target", "policy"].map((id) => byId(id).value)];
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  const text = btoa(Array.from(packed, (it) => String.fromCharCode(it)).join(""));
  location.hash = text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  said.textContent = "the address of this page now contains the text and its options";
}

async function linked() {
  if (location.hash.length < 2) return false;
  try {
    const bytes = await through(new DecompressionStream("deflate-raw"), fromBase64(location.hash.slice(1)));
    const [text, host, target, policy] = JSON.parse(new TextDecoder().decode(bytes));
    Object.assign(field, { value: text });
    for (const [id, value] of Object.entries({ host, target, policy })) byId(id).value = value;
    return true;
  } catch {
    said.textContent = "the link is damaged";
    return false;
  }
}

/** Replaces the text by a call's, and says what else it returns. */
function change(call, words) {
  const result = tried(call);
  if (result.error) {
    said.textContent = result.error.message;
    return;
  }
  replace(result.text);
  said.textContent = words(result);
}

async function begin() {
  vmdisk = await load(await through(new DecompressionStream("gzip"), fromBase64(PACKED)));
  hosts = new Map(HOSTS.map(({ name, facts }) => [name, vmdisk.host(facts)]));
  byId("host").append(...HOSTS.map(({ name, label }) => make("option", { value: name }, label)));
  byId("example").append(...Object.keys(EXAMPLES).map((name) => make("option", { value: name }, name)));
  if (!(await linked())) field.value = EXAMPLES["a domain"];
  const scroll = () => Object.assign(marks, { scrollTop: field.scrollTop, scrollLeft: field.scrollLeft });
  field.addEventListener("input", check);
  field.addEventListener("scroll", scroll);
  byId("options").addEventListener("input", ({ target }) => (target.id === "example" ? replace(EXAMPLES[target.value]) : check()));
  byId("options").addEventListener("submit", (event) => event.preventDefault());
  byId("fix-all").onclick = () => change(() => vmdisk.fix(field.value, options()), ({ report }) => `${report.summary.fixed} fixed`);
  const reason = ({ option, value, reason }) => `${option}=${value}: ${reason}`;
  byId("decide").onclick = () =>
    change(() => vmdisk.decide(field.value, options()), ({ decisions }) => decisions.disks.flatMap(({ choices }) => choices.map(reason)).join("; "));
  byId("convert").onclick = () => {
    const { target } = options();
    change(() => vmdisk.convert(field.value, target ? { target } : {}), ({ losses }) => (losses.length ? `not carried over: ${losses.join("; ")}` : ""));
  };
  byId("link").onclick = (event) => (event.preventDefault(), link());
  addEventListener("hashchange", async () => (await linked()) && check());
  check();
}

const ready = begin();
