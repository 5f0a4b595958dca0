// The case of a sale: its records with their files, its findings and its time line. Blocks of cases stand behind the
// script as packed text; one is unpacked when one of its sales is opened.

class Cases {
  constructor({ sales, atOnce }) {
    this.sales = sales;
    this.atOnce = atOnce;
    this.whole = new Promise((done) => {
      if (document.readyState === "loading") addEventListener("DOMContentLoaded", done, { once: true });
      else done();
    });
  }

  // The case of a row; null for a row behind the last one that has a case.
  async of(row) {
    if (row >= this.sales) return null;
    const number = Math.floor(row / this.atOnce);
    if (this.latest?.number !== number) this.latest = { number, cases: this.read(number) };
    const { records, events, findings } = await this.latest.cases;
    return { records: rowsOf(row, records), events: rowsOf(row, events), findings: rowsOf(row, findings) };
  }

  async read(number) {
    await this.whole;
    return JSON.parse(await unpacked(document.querySelectorAll("script.cases")[number]));
  }
}

// The rows of a sale in a table of columns.
function rowsOf(place, columns) {
  const names = Object.keys(columns);
  const rows = [...columns.sale.keys()].filter((row) => columns.sale[row] === place);
  return rows.map((row) => Object.fromEntries(names.map((name) => [name, columns[name][row]])));
}

// A code that may be broken after its underscores.
const breakable = (code) => element("code", {}, ...code.split(/(?<=_)/).flatMap((part) => [part, element("wbr")]));

class CaseWriter {
  constructor(writer) {
    this.writer = writer;
    this.words = writer.page.words;
  }

  // The sections of a panel; a sale may have no case in this page.
  sections(told) {
    if (!told) return [element("p", {}, say("This page has the records, deadlines and time lines of the first {sales} sales, the gravest and oldest ones. This sale comes after them.", { sales: this.writer.number(this.writer.page.cases.sales) }))];
    const names = this.recordNames(told.records);
    const records = told.records.map((record, place) => this.record(record, names[place]));
    const none = [element("li", {}, say("No evidence record had been observed."))];
    return [
      ...this.writer.section(say("Evidence records"), ...(records.length ? records : none)),
      ...this.writer.section(say("Findings"), ...told.findings.map((finding) => this.finding(finding))),
      element("section", {}, element("h3", {}, say("Time line")), this.timeLine(told.events, names)),
    ];
  }

  // POV, or POV (2) for the second of several.
  recordNames(records) {
    const types = records.map(({ type }) => type);
    const count = (some, type) => some.filter((each) => each === type).length;
    return types.map((type, at) => (count(types, type) > 1 ? `${type} (${count(types.slice(0, at + 1), type)})` : type));
  }

  record({ id, type, state, requested, withdrawn, reason, withdrawnBy, approvedBy, ...file }, name) {
    const { types, states, coverages } = this.words;
    const facts = [];
    if (file.size !== null) {
      const { size, seconds, pages, sha256, coverage, fault, seen } = file;
      facts.push([say("File"), this.extent(size, seconds, pages)]);
      if (sha256) facts.push(["SHA-256", element("code", {}, `${sha256}\u2026`)]);
      facts.push([say("Looked at"), coverages[coverage] ?? coverage]);
      if (fault) facts.push([say("Fault"), this.fault(fault)]);
      facts.push([say("Observed since"), this.writer.moment(seen)]);
    }
    facts.push([say("Requested"), this.writer.moment(requested)]);
    if (withdrawn) {
      const people = say("by {by}, approved by {approver}", { by: withdrawnBy ?? "-", approver: approvedBy ?? "-" });
      facts.push([say("Withdrawn"), `${this.writer.moment(withdrawn)}, ${people}`], [say("Reason"), reason ?? "-"]);
    }
    facts.push([say("Record"), element("code", {}, id)]);
    return element(
      "li",
      { className: "record" },
      element("h4", {}, element("i", { className: `dot fill-${state === "COUNTED" ? "compliant" : state}` }), types[type] ?? type),
      element("p", {}, breakable(name), " ", element("span", { className: "state" }, states[state] ?? state)),
      this.facts(facts),
    );
  }

  extent(size, seconds, pages) {
    const number = (value, digits = 0) => value.toLocaleString(this.writer.page.language, { maximumFractionDigits: digits });
    const told = [size === 1 ? say("{number} byte", { number: 1 }) : say("{number} bytes", { number: number(size) })];
    if (seconds) told.push(say("{number} s", { number: number(seconds, 1) }));
    if (pages) told.push(pages === 1 ? say("{number} page", { number: 1 }) : say("{number} pages", { number: number(pages) }));
    return told.join(", ");
  }

  fault(code) {
    return element("span", {}, this.writer.trouble(code), ` ${this.words.codes[code]?.meaning ?? ""}`);
  }

  finding({ code, status, firstSeen, dueAt, overdue, waiver }) {
    const { findingStatuses } = this.words;
    const facts = [
      [say("Status"), findingStatuses[status] ?? status],
      [say("First seen"), this.writer.moment(firstSeen)],
    ];
    if (status !== "resolved") facts.push([say("Due"), `${this.writer.moment(dueAt)}${overdue ? `, ${say("past due")}` : ""}`]);
    if (waiver) {
      const people = say("by {by}, approved by {approver}", { by: waiver.owner ?? "-", approver: waiver.approvedBy ?? "-" });
      facts.push([say("Waived until {day}", { day: this.writer.written(waiver.end) }), people], [say("Reason"), waiver.reason ?? "-"]);
    }
    return element("li", {}, this.writer.trouble(code), " ", element("code", {}, code), this.facts(facts));
  }

  // A table, the oldest event first; the usual offset of the times stands in its heading.
  timeLine(events, names) {
    const { events: kinds } = this.words;
    if (!events.length) return element("p", {}, say("The custody log tells of no event."));
    const offset = (iso) => iso.slice(19);
    const usual = this.writer.page.offset;
    const rows = events.map(({ at, kind, record }) =>
      element(
        "tr",
        {},
        element("td", { className: "when" }, `${this.writer.written(at.slice(0, 10))}, ${at.slice(11, 19)}${offset(at) === usual ? "" : ` (UTC${offset(at)})`}`),
        element("td", {}, kinds[kind] ?? kind),
        element("td", {}, breakable(names[record])),
      ),
    );
    const headings = [`${say("When")} (UTC${usual})`, say("Event"), say("Evidence")].map((name) => element("th", { scope: "col" }, name));
    return element("table", { className: "events" }, element("thead", {}, element("tr", {}, ...headings)), element("tbody", {}, ...rows));
  }

  facts(pairs) {
    return element("dl", { className: "facts" }, ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }
}
