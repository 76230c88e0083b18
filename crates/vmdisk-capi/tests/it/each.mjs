// The report of each case of a file of `vmdisk_testing::cases_file`, with a zero byte after each.
export function reports(vmdisk, cases) {
  const parts = cases.split("\0");
  let out = "";
  for (let at = 0; at + 3 < parts.length; at += 4) {
    const [name, text, facts, options] = parts.slice(at, at + 4);
    const host = facts ? vmdisk.host(facts) : undefined;
    out += vmdisk.json(name, text, { ...JSON.parse(options), host }) + "\0";
  }
  return out;
}
