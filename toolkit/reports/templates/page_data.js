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

class NamedColumn {
  constructor({ values, at }) {
    this.values = values;
    this.at = Int32Array.from(at);
  }

  cell(row) {
    return this.at[row] < 0 ? "" : this.values[this.at[row]];
  }

  get length() {
    return this.at.length;
  }

  // A test of cells that has to look at each value only once.
  tester(fits) {
    const good = Uint8Array.from(this.values, (value) => (fits(value) ? 1 : 0));
    const empty = fits("") ? 1 : 0;
    return (row) => (this.at[row] < 0 ? empty : good[this.at[row]]);
  }
}

class CellColumn {
  constructor({ cells }) {
    this.cells = cells;
  }

  cell(row) {
    return this.cells[row] ?? "";
  }

  get length() {
    return this.cells.length;
  }

  tester(fits) {
    return (row) => fits(this.cells[row] ?? "");
  }
}

// UUIDs, their digits without the dashes; spaces where there is none.
class IdColumn {
  constructor({ digits }) {
    this.digits = digits;
  }

  cell(row) {
    const digits = this.digits.slice(row * 32, row * 32 + 32);
    return digits[0] === " " ? "" : digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  get length() {
    return this.digits.length / 32;
  }

  tester(fits) {
    return (row) => fits(this.cell(row));
  }
}

// Seconds of the local time, and the offset that it had then.
class TimeColumn extends CellColumn {
  constructor(column) {
    super(column);
    this.offsets = new NamedColumn({ values: column.offsets, at: column.at });
  }

  text(row, end) {
    const seconds = this.cells[row];
    return seconds === null ? "" : new Date(seconds * 1000).toISOString().slice(0, end);
  }

  iso(row) {
    const text = this.text(row, 19);
    return text && text + this.offsets.cell(row);
  }
}

class Sales {
  constructor(page) {
    const kinds = { named: NamedColumn, text: CellColumn, id: IdColumn, number: CellColumn, time: TimeColumn };
    this.columns = new Map(page.columns.map((column) => [column.name, new kinds[column.kind](column)]));
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
    const column = this.columns.get(name);
    if (column instanceof TimeColumn) return column.iso(row);
    const cell = column.cell(row);
    return typeof cell === "string" && /^'*[=+\-@\t\r\n]/.test(cell) ? `'${cell}` : String(cell);
  }
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
