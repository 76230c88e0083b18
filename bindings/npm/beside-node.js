// The compiled library beside this file, in Node and in programs like it.
import { readFile } from "node:fs/promises";

export const bytesBeside = () => readFile(new URL("vmdisk.wasm", import.meta.url));
