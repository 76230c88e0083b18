// The compiled library beside this file, in a browser: bundlers copy the file by this address.
export const bytesBeside = async () => (await fetch(new URL("vmdisk.wasm", import.meta.url))).arrayBuffer();
