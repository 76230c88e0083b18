// Calls the C interface of vmdisk, which is described in vmdisk.h, in WebAssembly, which imports nothing.

/** A text that cannot be read, a wrong option, or something impossible; with the place in the text, if there is one. */
export class VmdiskError extends Error {
  constructor({ message, help = null, start = null, end = null }) {
    super(message);
    this.name = "VmdiskError";
    Object.assign(this, { help, start, end });
  }
}

/** The facts of a host. */
class Host {
  constructor(facts) {
    this.facts = facts;
  }
}

/** The command line with these arguments, as a text: places in a report count in it. */
export function commandLine(words) {
  const quoted = (word) => (/^[\w%+,./:=@^-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  return words.map(quoted).join(" ");
}

class Vmdisk {
  #module;
  #wasm;
  #hosts;
  #freed;

  constructor(module, instance) {
    this.#module = module;
    this.#use(instance);
  }

  #use(instance) {
    const wasm = instance.exports;
    this.#wasm = wasm;
    this.#hosts = new WeakMap();
    this.#freed = new FinalizationRegistry((pointer) => wasm.vmdisk_host_free(pointer));
  }

  #put(text) {
    if (text.includes("\0")) throw new VmdiskError({ message: "expected a text, found a zero byte" });
    const bytes = new TextEncoder().encode(text);
    const pointer = this.#wasm.vmdisk_alloc(bytes.length);
    new Uint8Array(this.#wasm.memory.buffer).set(bytes, pointer);
    return pointer;
  }

  #text(pointer) {
    const memory = new Uint8Array(this.#wasm.memory.buffer);
    return new TextDecoder().decode(memory.subarray(pointer, memory.indexOf(0, pointer)));
  }

  /** The text at this place, which is freed. */
  #take(pointer) {
    const text = this.#text(pointer);
    this.#wasm.vmdisk_free(pointer);
    return text;
  }

  /** Runs a function with texts in memory. After a bug, the next call begins with a new instance. */
  #with(texts, run) {
    try {
      const pointers = texts.map((text) => this.#put(text));
      const result = run(pointers);
      pointers.forEach((pointer) => this.#wasm.vmdisk_free(pointer));
      return result;
    } catch (error) {
      if (error instanceof VmdiskError || error instanceof TypeError) throw error;
      this.#use(new WebAssembly.Instance(this.#module));
      throw new VmdiskError({ message: `could not be done because of a bug in vmdisk: ${error.message}` });
    }
  }

  #pointer(host) {
    if (host === undefined || host === null) return 0;
    if (!(host instanceof Host)) throw new TypeError("expected a host of vmdisk.host()");
    if (this.#hosts.has(host)) return this.#hosts.get(host);
    const wasm = this.#wasm;
    const pointer = this.#with([host.facts, "    "], ([facts, error]) => {
      const parsed = wasm.vmdisk_host_parse(facts, error);
      const view = new DataView(wasm.memory.buffer);
      const failure = view.getUint32(error, true);
      // What is freed has the bytes that it was made with.
      view.setUint32(error, 0x20202020, true);
      if (failure) throw new VmdiskError(JSON.parse(this.#take(failure)).error);
      return parsed;
    });
    this.#hosts.set(host, pointer);
    this.#freed.register(host, pointer);
    return pointer;
  }

  get version() {
    return this.#text(this.#wasm.vmdisk_version());
  }

  host(facts) {
    const host = new Host(facts);
    this.#pointer(host);
    return host;
  }

  /** The report about all guests of one host, which are compared. */
  lintAll(inputs, options) {
    return JSON.parse(this.json("lint_all", JSON.stringify(inputs), options));
  }

  /** The JSON of a function, byte for byte as the command prints it. */
  json(name, text, { host, unsafe, ...options } = {}) {
    const words = JSON.stringify(unsafe === undefined ? options : { ...options, unsafe_fixes: unsafe });
    const pointer = this.#pointer(host);
    const json = this.#with([text, words], ([text, words]) => this.#take(this.#wasm[`vmdisk_${name}`](text, pointer, words)));
    if (json.startsWith('{"error":')) throw new VmdiskError(JSON.parse(json).error);
    return json;
  }
}

for (const name of ["lint", "fix", "decide", "trace", "plan", "convert"]) {
  Vmdisk.prototype[name] = function (text, options) {
    return JSON.parse(this.json(name, text, options));
  };
}

/** The index in a string of JavaScript of an offset of a report, which counts bytes of UTF-8. */
export function indexOf(text, offset) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text).subarray(0, offset)).length;
}

/** Compiles the library: the file beside this one, or these bytes. */
export async function load(wasm) {
  const module = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm ?? (await (await import("#beside")).bytesBeside()));
  return new Vmdisk(module, await WebAssembly.instantiate(module));
}
