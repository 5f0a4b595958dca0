"use strict";
// The sales that the page holds, by columns: a cell is found by its column and the number of its row.

async function readPage() {
  return JSON.parse(await unpacked(document.getElementById("data")));
}

// The text that an element holds, deflated and in base64.
async function unpacked({ textContent }) {
  const letters = atob(textContent);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
}

// Cells, or, where few values repeat, the values and the place of each cell's among them.
class Column {
  constructor({ cells, values, at }) {
    this.values = values;
    this.cells = cells ?? Int32Array.from(at);
    this.length = this.cells.length;
  }

  cell(row) {
    const cell = this.cells[row];
    return (this.values ? this.values[cell] : cell) ?? "";
  }

  // A test of cells that looks at each of few values only once.
  tester(fits) {
    if (!this.values) return (row) => fits(this.cell(row));
    const good = this.values.map(fits);
    const empty = fits("");
    return (row) => good[this.cells[row]] ?? empty;
  }
}

class Sales {
  constructor(page) {
    this.columns = new Map(page.columns.map((column) => [column.name, new Column(column)]));
    this.length = this.columns.get("saleId").length;
    this.notInCsv = page.notInCsv;
    this.form = page.csv;
  }

  cell(name, row) {
    return this.columns.get(name).cell(row);
  }

  list(name, row) {
    return listed(this.cell(name, row));
  }

  // [type, reason] of each missing piece.
  pieces(row) {
    const reasons = this.list("reasons", row);
    return this.list("missing", row).map((type, place) => [type, reasons[place]]);
  }

  // The same cells as the report's CSV has.
  csv(rows) {
    const names = [...this.columns.keys()].filter((name) => !this.notInCsv.includes(name));
    const { delimiter, mark } = this.form;
    const lines = [names.join(delimiter)];
    for (const row of rows) lines.push(names.map((name) => quoted(this.csvCell(name, row))).join(delimiter));
    const end = mark ? "\r\n" : "\n"; // with a mark, as a Brazilian Excel opens it
    return `${mark}${lines.join(end)}${end}`;
  }

  csvCell(name, row) {
    const cell = this.cell(name, row);
    return typeof cell === "string" && /^'*[=+\-@\t\r\n]/.test(cell) ? `'${cell}` : String(cell);
  }
}

// The sentences of the page in its language, by their English ones.
let sentences = {};

// A sentence in the language of the page; names in braces stand for values.
function say(sentence, values = {}) {
  return sentences[sentence].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function listed(text) {
  return text ? text.split("|") : [];
}

function quoted(text) {
  return /[",;\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function fold(text) {
  const lower = text.toLowerCase();
  return /[^\x00-\x7f]/.test(lower) ? lower.normalize("NFD").replace(/\p{Mn}/gu, "") : lower;
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.map((child) => (typeof child === "string" ? unturned(child) : child)));
  return made;
}

/* Characters that show a text in another order, written out: S\u202e01 would look like S10. */
function unturned(text) {
  const code = (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(/[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, code);
}
