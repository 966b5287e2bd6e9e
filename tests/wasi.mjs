// Runs a program of WebAssembly: node tests/wasi.mjs PROGRAM [ARGUMENT ...]
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WASI } from "node:wasi";

const folder = mkdtempSync(join(tmpdir(), "tfwire-"));
process.on("exit", () => rmSync(folder, { recursive: true }));
const wasi = new WASI({
  version: "preview1",
  args: process.argv.slice(2),
  env: process.env,
  preopens: { "/tmp": folder, [process.cwd()]: process.cwd(), ".": "." },
  returnOnExit: true,
});
const program = await WebAssembly.compile(readFileSync(process.argv[2]));
const instance = await WebAssembly.instantiate(program, wasi.getImportObject());
process.exit(wasi.start(instance));
