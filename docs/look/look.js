// Records of a file, read by tfwire's core (look.c) in this page. WASM is the core, as base64.
const CHUNK = 4 << 20; // bytes read at a time
const ROWS = 10;
const MOST_REGIONS = 100; // that are listed
const [LIST, STEP] = [1, 2];
const KINDS = ["no values", "bytes", "float", "int64"];
const REASONS = {
  "-10": "the file ends within a record",
  "-11": "a length does not match its checksum",
  "-12": "the data does not match its checksum",
  "-13": "a record is too large for this page",
};
const PICTURES = { jpeg: /^\xff\xd8\xff/, png: /^\x89PNG/, gif: /^GIF8/, webp: /^RIFF....WEBP/s };

const core = await WebAssembly.compile(Uint8Array.from(atob(WASM), (c) => c.charCodeAt(0)));
const element = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString("en");

// ---- Records -------------------------------------------------------------------------------

/** A reader with a memory of its own. */
class Reader {
  constructor() {
    const none = new Proxy({}, { get: () => () => 8 }); // files of WASI: there are none
    this.core = new WebAssembly.Instance(core, { wasi_snapshot_preview1: none }).exports;
    this.core._initialize();
  }

  get bytes() {
    return new Uint8Array(this.core.memory.buffer); // anew, since memory grows
  }

  /** Reads from a place on; yields when there is a batch of records in the core. */
  async *batches(file, place) {
    if (this.core.begin(place.offset, place.number) !== 0) throw new RangeError("no such place");
    for await (const bytes of file.read(place.offset)) {
      for (let at = 0; at < bytes.length; ) {
        const data = this.core.reserve();
        const length = Math.min(this.core.room(), bytes.length - at);
        if (data === 0) throw new RangeError(REASONS["-13"]);
        this.bytes.set(bytes.subarray(at, at + length), data);
        this.core.commit(length);
        at += length;
        yield* this.ready();
      }
    }
    this.core.commit(0);
    yield* this.ready();
  }

  *ready() {
    let status;
    while ((status = this.core.next()) === 0) yield;
    if (status < 0) throw new RangeError(REASONS[status] ?? `error ${status}`);
  }

  /** Stretches that were left out so far. */
  regions() {
    const found = [];
    for (let i = 0; i < Math.min(this.core.regions(), MOST_REGIONS); i++) {
      const values = new Float64Array(this.core.memory.buffer, this.core.region(i), 4);
      const [begin, end, reason, number] = values;
      found.push({ begin, end, reason: REASONS[reason], number });
    }
    return found;
  }

  /** Record i of the batch; features is null if it is no Example. */
  record(i) {
    const [at, length] = [this.core.payload(i), this.core.length(i)];
    const found = { number: this.core.number(i), offset: this.core.offset(i), length };
    const total = this.core.decode(at, length);
    if (total < 0) return { ...found, features: null, bytes: this.bytes.slice(at, at + length) };
    const table = new DataView(this.core.memory.buffer, this.core.features(), 24 * total);
    const features = new Map();
    let list;
    for (let row = 0; row < total; row++) {
      const [key, size, kind, place, n, first] = [0, 4, 8, 12, 16, 20].map((field) =>
        table.getUint32(24 * row + field, true),
      );
      const feature = { kind, count: n, values: this.values(kind, n, first) };
      if (place === STEP) {
        list.steps.push(feature);
        continue;
      }
      const name = new TextDecoder().decode(this.bytes.subarray(key, key + size));
      feature.name = place === LIST ? `${name} (steps)` : name;
      if (place === LIST) list = Object.assign(feature, { steps: [] });
      features.set(feature.name, feature); // of a key that comes twice the last one counts
    }
    return { ...found, features };
  }

  /** The first values of a feature; strings are copies. */
  values(kind, n, first) {
    const at = this.core.values() + 8 * first;
    const buffer = this.core.memory.buffer;
    if (kind === 2) return Array.from(new Float64Array(buffer, at, Math.min(n, 1000)));
    if (kind === 3) return Array.from(new BigInt64Array(buffer, at, Math.min(n, 1000)));
    if (kind !== 1) return [];
    const pairs = new Uint32Array(buffer, at, 2 * Math.min(n, 100));
    return Array.from({ length: pairs.length / 2 }, (_, i) =>
      this.bytes.slice(pairs[2 * i], pairs[2 * i] + pairs[2 * i + 1]),
    );
  }
}

/** A file of the user, inflated if its name or its first bytes say that it is compressed. */
class RecordFile {
  constructor(file, format) {
    Object.assign(this, { file, format, places: [{ number: 0, offset: 0 }] });
  }

  static async open(file) {
    const start = new Uint8Array(await file.slice(0, 2).arrayBuffer());
    const gzip = start[0] === 0x1f && start[1] === 0x8b;
    return new RecordFile(file, gzip ? "gzip" : /\.zlib$/.test(file.name) ? "deflate" : null);
  }

  async *read(offset) {
    if (this.format !== null) {
      const parts = this.file.stream().pipeThrough(new DecompressionStream(this.format));
      for (const reader = parts.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) return;
        yield value;
      }
    }
    for (; offset < this.file.size; offset += CHUNK) {
      yield new Uint8Array(await this.file.slice(offset, offset + CHUNK).arrayBuffer());
    }
  }

  /** Notes where a record begins: records after it are read from there on. */
  note(number, offset) {
    if (this.format === null && offset >= this.places.at(-1).offset + CHUNK) {
      this.places.push({ number, offset });
    }
  }

  placeBefore(number) {
    return this.places.findLast((place) => place.number <= number);
  }
}

// ---- What is shown -------------------------------------------------------------------------

let opened = null; // { file, records, bytes, done }: what was verified so far
let page = 0; // of which the newest is shown
let pictures = []; // their addresses, given back with the page

function add(parent, name, text, properties = {}) {
  const child = Object.assign(document.createElement(name), properties);
  if (text !== undefined) child.textContent = text;
  parent.append(child);
  return child;
}

/** The fewest digits that stand for this float32. */
function digits(value) {
  for (let precision = 6; precision < 10; precision++) {
    const short = Number(value.toPrecision(precision));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

function showString(cell, bytes, room) {
  const start = String.fromCharCode(...bytes.subarray(0, 12));
  const type = Object.keys(PICTURES).find((name) => PICTURES[name].test(start));
  if (type !== undefined) {
    const address = URL.createObjectURL(new Blob([bytes], { type: `image/${type}` }));
    pictures.push(address);
    add(add(cell, "span", undefined, { className: "p" }), "img", undefined, {
      src: address,
      alt: `${type.toUpperCase()}, ${count(bytes.length)} bytes`,
    });
    return add(cell, "small", `${type.toUpperCase()}, ${count(bytes.length)} bytes`);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!/[\x00-\x08\x0e-\x1f]/.test(text)) {
      const more = text.length > room ? "…" : "";
      return add(cell, "span", text.slice(0, room) + more, { className: "s" });
    }
  } catch {
    // It is no text.
  }
  const hex = Array.from(bytes.subarray(0, room / 4), (b) => b.toString(16).padStart(2, "0"));
  add(cell, "span", hex.join(" "), { className: "b" });
  return add(cell, "small", ` ${count(bytes.length)} bytes`);
}

function showFeature(cell, feature, room) {
  if (feature.steps !== undefined) {
    feature.steps.slice(0, room / 20).forEach((step, i) => {
      add(cell, "small", `${i}: `);
      showFeature(cell, step, room);
      add(cell, "br");
    });
    add(cell, "small", `${count(feature.steps.length)} steps`);
  } else if (feature.kind === 1) {
    for (const bytes of feature.values.slice(0, room / 20)) {
      showString(cell, bytes, room);
      cell.append(" ");
    }
  } else {
    const shown = feature.values.slice(0, room / 10);
    cell.append(shown.map((value) => (feature.kind === 2 ? digits(value) : value)).join(", "));
  }
  if (feature.steps === undefined && feature.count !== 1) {
    add(cell, "small", feature.count === 0 ? "no values" : ` ${count(feature.count)} values`);
  }
}

function showRecord(record) {
  const section = element("record");
  section.replaceChildren();
  section.hidden = false;
  add(section, "h2", `Record ${count(record.number)}`, { tabIndex: -1 }).focus();
  add(section, "p", `at byte ${count(record.offset)}, ${count(record.length)} bytes`, {
    className: "facts",
  });
  const body = add(add(section, "table", undefined, { className: "record" }), "tbody");
  for (const feature of record.features?.values() ?? []) {
    const row = add(body, "tr");
    add(row, "td", feature.name);
    add(row, "td", feature.steps === undefined ? KINDS[feature.kind] : "feature list");
    showFeature(add(row, "td"), feature, 2000);
  }
  if (record.features === null) showString(add(section, "pre"), record.bytes, 2000);
}

function showTable(rows) {
  const names = [...new Set(rows.flatMap((row) => [...(row.features?.keys() ?? [])]))];
  const [head, body] = ["thead", "tbody"].map((name) => document.querySelector(`.records ${name}`));
  head.replaceChildren();
  body.replaceChildren();
  const titles = add(head, "tr");
  for (const title of ["record", "byte", ...names]) add(titles, "th", title, { scope: "col" });
  for (const row of rows) {
    const line = add(body, "tr", undefined, { className: row.reason === undefined ? "" : "bad" });
    const first = add(line, "td");
    if (row.reason !== undefined) {
      first.append(count(row.number));
      add(line, "td", count(row.begin));
      const words = `left out up to byte ${count(row.end)}: ${row.reason}`;
      add(line, "td", words, { colSpan: names.length || 1 });
      continue;
    }
    add(first, "button", count(row.number), { onclick: () => showRecord(row) });
    add(line, "td", count(row.offset));
    if (row.features === null) {
      showString(add(line, "td", "no Example: ", { colSpan: names.length || 1 }), row.bytes, 160);
    }
    for (const name of row.features === null ? [] : names) {
      const cell = add(line, "td");
      if (row.features.has(name)) showFeature(cell, row.features.get(name), 80);
    }
  }
}

/** Shows the records from a number on. */
async function show(number) {
  const mine = ++page;
  const { file } = opened;
  const reader = new Reader();
  const rows = [];
  const last = number + ROWS - 1;
  search: for await (const _ of reader.batches(file, file.placeBefore(number))) {
    if (mine !== page) return;
    for (let i = 0; i < reader.core.count(); i++) {
      const found = reader.core.number(i);
      if (found > last) break search;
      if (found >= number) rows.push(reader.record(i));
      if (found === last) break search;
    }
  }
  if (mine !== page) return;
  const damage = reader.regions().filter((r) => r.number >= number && r.number <= last);
  pictures.forEach((address) => URL.revokeObjectURL(address));
  pictures = [];
  element("record").hidden = true;
  element("first").value = number;
  element("back").disabled = number === 0;
  element("next").disabled = rows.length + damage.length === 0;
  showTable([...rows, ...damage].sort((a, b) => a.number - b.number));
}

function showFacts(reader) {
  const { file, records, bytes, done } = opened;
  const size = `${count(file.file.size)} bytes${file.format === null ? "" : `, ${file.format}`}`;
  const regions = reader.core.regions();
  const damage =
    regions === 0 ? "no damage" : `damaged at ${count(regions)} ${regions === 1 ? "place" : "places"}`;
  const words = done ? `verified: ${damage}` : `checking ...${regions === 0 ? "" : ` ${damage}`}`;
  const none = done && records === 0 && file.file.size > 0 ? "No record was found. " : "";
  element("facts").textContent =
    `${none}${count(records)} records, ${count(bytes)} bytes in them; ${size}; ${words}`;
  if (!done || regions === 0) return;
  const list = document.querySelector("#damage ul");
  element("damage").hidden = false;
  for (const { begin, end, reason, number } of reader.regions()) {
    add(list, "li", `record ${count(number)}, bytes ${count(begin)} to ${count(end)}: ${reason}`);
  }
}

/** Reads all of a file once. */
async function verify(mine) {
  const reader = new Reader();
  let shown = 0;
  for await (const _ of reader.batches(mine.file, mine.file.places[0])) {
    if (mine !== opened) return;
    mine.file.note(reader.core.number(0), reader.core.offset(0));
    mine.records += reader.core.count();
    mine.bytes += reader.core.payload_bytes();
    if (performance.now() < shown + 200) continue;
    shown = performance.now();
    showFacts(reader);
  }
  if (mine !== opened) return;
  mine.done = true;
  showFacts(reader);
}

async function open(file) {
  const mine = { file: await RecordFile.open(file), records: 0, bytes: 0, done: false };
  opened = mine;
  element("name").textContent = document.title = file.name;
  element("go").hidden = false;
  element("damage").hidden = true;
  document.querySelector("#damage ul").replaceChildren();
  await run(async () => {
    await show(0);
    if (mine === opened) await verify(mine); // and no other was chosen meanwhile
  });
}

/** What fails is said where the facts are. */
async function run(work) {
  const mine = opened;
  try {
    await work();
  } catch (error) {
    if (mine === opened) element("facts").textContent = `The file cannot be read: ${error.message}`;
  }
}

element("file").addEventListener("change", (event) => {
  if (event.target.files.length > 0) open(event.target.files[0]);
});
element("go").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = Number(element("first").value.replaceAll(/[,\s]/g, ""));
  if (Number.isSafeInteger(number) && number >= 0) run(() => show(number));
});
for (const [id, step] of [["back", -ROWS], ["next", ROWS]]) {
  element(id).addEventListener("click", () =>
    run(() => show(Math.max(0, Number(element("first").value) + step))),
  );
}
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length > 0) open(event.dataTransfer.files[0]);
  });
}
