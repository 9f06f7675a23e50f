// Encodes documents with a peer's tokenizer, on one core:
//   node tokenizers.mjs tiktoken|tokenizers TOKENIZER.json DOCUMENTS.jsonl EOS
// Prints {"seconds", "tokens", "sha256"}: of encoding alone, after a part that is not timed; the
// hash is over the ids as uint32, EOS behind each document.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [peer, tokenizerFile, documentsFile, eos] = process.argv.slice(2);
const require = createRequire(process.cwd() + "/");

// Merges of a byte-level BPE are numbered in the order in which they apply, so that tiktoken's
// ranks are the ids.
function tiktoken(file) {
  const { model, pre_tokenizer } = JSON.parse(readFileSync(file, "utf8"));
  const bytes = byteOfCharacter();
  const tokens = Object.entries(model.vocab)
    .filter(([token]) => [...token].every((character) => bytes.has(character)))
    .map(([token, id]) => [id, Buffer.from([...token].map((c) => bytes.get(c))).toString("base64")])
    .sort(([a], [b]) => a - b);
  // Special tokens that are spelled in ASCII lie before or behind the tokens of bytes and merges.
  const made = new Set(model.merges.map((m) => (typeof m === "string" ? m : m.join(" ")).replace(" ", "")));
  const known = new Map(Object.entries(model.vocab).map(([token, id]) => [id, token]));
  const real = tokens.filter(([id]) => [...known.get(id)].length === 1 || made.has(known.get(id)));
  const lines = [];
  for (const [id, token] of real) {
    if (lines.length > 0 && id === lines.at(-1).next) lines.at(-1).tokens.push(token);
    else lines.push({ first: id, tokens: [token] });
    lines.at(-1).next = id + 1;
  }
  const ranks = lines.map(({ first, tokens }) => `! ${first} ${tokens.join(" ")}`).join("\n");
  const split = (pre_tokenizer.pretokenizers ?? [pre_tokenizer]).find((p) => p.type === "Split");
  const { Tiktoken } = require("tiktoken");
  const encoder = new Tiktoken(ranks, {}, split.pattern.Regex);
  return { encode: (texts) => texts.map((text) => encoder.encode_ordinary(text)), ids: (e) => e };
}

async function tokenizers(file) {
  const tokenizer = require("tokenizers").Tokenizer.fromFile(file);
  return {
    encode: (texts) => tokenizer.encodeBatch(texts, { addSpecialTokens: false }),
    ids: (encoding) => encoding.getIds(),
  };
}

// GPT-2's characters for bytes: printable ones stand for themselves, the others follow from 256.
function byteOfCharacter() {
  const map = new Map();
  let next = 256;
  for (let byte = 0; byte < 256; ++byte) {
    const shown = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    map.set(String.fromCharCode(shown ? byte : next++), byte);
  }
  return map;
}

const texts = readFileSync(documentsFile, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line).text);
const { encode, ids } = await (peer === "tiktoken" ? tiktoken : tokenizers)(tokenizerFile);
await encode(texts.slice(0, Math.ceil(texts.length / 10)));
const begin = process.hrtime.bigint();
const encoded = await encode(texts);
const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
const hash = createHash("sha256");
let tokens = 0;
for (const one of encoded) {
  const all = Uint32Array.from([...ids(one), Number(eos)]);
  hash.update(new Uint8Array(all.buffer));
  tokens += all.length;
}
console.log(JSON.stringify({ seconds, tokens, sha256: hash.digest("hex") }));
