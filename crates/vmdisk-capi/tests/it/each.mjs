// The report of each case of a file of `vmdisk_testing::cases_file`, with a zero byte after each.
export function reports(vmdisk, cases) {
  const parts = cases.split("\0");
  let out = "";
  for (let at = 0; at + 2 < parts.length; at += 3) {
    const [name, text, facts] = parts.slice(at, at + 3);
    const host = facts ? vmdisk.host(facts) : undefined;
    out += vmdisk.json("lint", text, { name, host }) + "\0";
  }
  return out;
}
