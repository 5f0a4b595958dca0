// One sale: its cells in the grid and in print, and all about it in a panel.

const TIMES = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/;

// A text as a shell reads it.
const argument = (text) => (/^[\w.:@%+=,/][\w.:@%+=,/-]*$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`);

class SaleWriter {
  constructor(sales, page) {
    this.sales = sales;
    this.page = page;
    this.findings = new Map();
    for (const finding of page.fileFindings) {
      for (const sale of finding.sales) this.findings.set(sale, [...(this.findings.get(sale) ?? []), finding]);
    }
  }

  lines(row) {
    const { sales } = this;
    const troubles = sales.cell("problems", row) ? 1 : 0;
    const pieces = sales.list("missing", row).length;
    const counted = !pieces && sales.cell("counted", row) ? 1 : 0;
    return Math.max(pieces + counted + troubles, 2);
  }

  number(value) {
    return value.toLocaleString(this.page.language);
  }

  status(row) {
    const status = this.sales.cell("status", row);
    return element("span", { className: `status ${status}` }, this.page.words.statuses[status] ?? status);
  }

  piece([type, reason]) {
    const { types, codes } = this.page.words;
    return element(
      "li",
      {},
      element("i", { className: `dot fill-${reason}` }),
      element("b", {}, types[type] ?? type),
      " ",
      element("span", { className: "reason" }, codes[reason]?.name ?? reason),
    );
  }

  trouble(problem) {
    const word = this.page.words.codes[problem];
    return element("span", { className: `trouble ${word?.severity ?? ""}` }, word?.name ?? problem);
  }

  missing(row) {
    const { sales, page } = this;
    const pieces = sales.pieces(row);
    const counted = sales.list("counted", row);
    const found = [];
    if (pieces.length) found.push(element("ul", { className: "pieces" }, ...pieces.map((piece) => this.piece(piece))));
    else if (counted.length) found.push(element("span", { className: "has" }, say("there is {counted}", { counted: counted.map((type) => page.words.types[type] ?? type).join(", ") })));
    const troubles = sales.list("problems", row).map((problem) => this.trouble(problem));
    if (troubles.length) found.push(element("span", { className: "troubles" }, ...troubles));
    return found;
  }

  // A day as the language writes it: the first of each month of the year 2000 is an example.
  written(day) {
    const [year, month, date] = day.split("-");
    return this.page.months[month - 1].replace("2000", year).replace(/^0?1/, (one) => (one.length > 1 ? date : Number(date)));
  }

  // The offset is told on top of the page, and here where it is another one.
  moment(iso) {
    const offset = iso.slice(19) === this.page.offset ? "" : ` (UTC${iso.slice(19)})`;
    return `${this.written(iso.slice(0, 10))}, ${iso.slice(11, 16)}${offset}`;
  }

  day(name, row) {
    const day = this.sales.cell(name, row).slice(0, 10);
    return day ? element("span", { className: "day" }, this.written(day)) : element("span", { className: "none" }, say("no"));
  }

  waived(row) {
    return this.sales.cell("waived", row) ? [element("br"), element("span", { className: "waived" }, say("waived"))] : [];
  }

  // The cells of a row, in the order of the headings.
  contents(row, link) {
    const { sales } = this;
    return [
      [link ?? sales.cell("saleId", row)],
      [sales.cell("utilityGroup", row)],
      [this.status(row), ...this.waived(row)],
      this.missing(row),
      [element("span", { className: "partner" }, sales.cell("partner", row) || say("no partner")), element("br"), element("span", { className: "cpf" }, sales.cell("cpf", row) || say("no client"))],
      [this.number(sales.cell("ageDays", row)), element("br"), this.day("createdAt", row)],
      [this.day("completedAt", row)],
    ];
  }

  gridCells(row, address) {
    const link = element("a", { href: address }, this.sales.cell("saleId", row));
    const classes = ["id", "group", "state", "what", "who", "count", "done"];
    return this.contents(row, link).map((parts, place) => element("div", { className: classes[place] }, ...parts));
  }

  printedRow(row) {
    const [first, ...others] = this.contents(row);
    const heading = element("th", { scope: "row" }, ...first);
    return element("tr", {}, heading, ...others.map((parts, place) => element("td", { className: place === 4 ? "count" : "" }, ...parts)));
  }

  // A code in sentences: its meaning, and the remedy with the people who have to act.
  explained(code, detail = "") {
    const word = this.page.words.codes[code];
    const told = [element("span", { className: "reason" }, [word?.meaning, detail && `(${detail})`].filter(Boolean).join(" "))];
    if (!word?.remedy) return told;
    const label = word.owner ? `${say("To do ({owner})", { owner: word.owner })}: ` : "";
    return [...told, element("span", { className: "remedy" }, label, word.remedy)];
  }

  section(title, ...items) {
    return items.length ? [element("section", {}, element("h3", {}, title), element("ul", { className: "told" }, ...items))] : [];
  }

  // What is odd about the files of a sale.
  files(sale) {
    const found = (this.findings.get(sale) ?? []).map((finding) =>
      element(
        "li",
        {},
        this.trouble(finding.problem),
        ...this.explained(finding.problem, finding.detail),
        ...finding.folders.flatMap((folder) => [element("code", {}, folder), element("br")]),
      ),
    );
    return this.section(say("Findings about files"), ...found);
  }

  // A sale that is not in the grid: it is compliant, or not known.
  panelOfOther(sale) {
    const told = say("{sale} is none of the sales to act on: it is compliant, or no sale of this report.", { sale });
    return [element("h2", { id: "sale-name" }, sale), element("p", {}, told), ...this.files(sale), this.command(sale)];
  }

  command(sale) {
    return element("p", {}, say("The same and more, as it is now:"), " ", element("code", {}, `toolkit sale show ${argument(sale)}`));
  }

  // The pieces that the sale needs, by its group and by who pays.
  rule(row) {
    const { types } = this.page.words;
    const pieces = this.page.rules[this.sales.cell("utilityGroup", row)]?.[this.sales.cell("isClientFinancialResponsible", row)];
    if (!pieces) return this.section(say("Rule"), element("li", {}, say("none: the utility group is unknown")));
    const named = (type, place) => [place ? ` ${say("or")} ` : "", types[type] ?? type, " ", element("code", {}, type)];
    const items = pieces.map((accepted) => element("li", {}, ...accepted.flatMap(named)));
    return this.section(say("Rule"), ...items, element("li", {}, say("or exactly one KYC and nothing else")));
  }

  panel(row) {
    const { sales, page } = this;
    const { types } = page.words;
    const sale = sales.cell("saleId", row);
    const pieces = sales.pieces(row).map((piece) => {
      const item = this.piece(piece);
      item.append(" ", element("code", {}, piece[0]), ...this.explained(piece[1]));
      return item;
    });
    const troubles = sales
      .list("problems", row)
      .concat(sales.cell("clientId", row) ? [] : ["WITHOUT_CLIENT"])
      .map((problem) => element("li", {}, this.trouble(problem), " ", element("code", {}, problem), ...this.explained(problem)));
    const counted = sales.list("counted", row).map((type) => element("li", {}, types[type] ?? type, " ", element("code", {}, type)));
    return [
      element("h2", { id: "sale-name" }, sale),
      element("p", {}, this.status(row), ` ${page.asOf}`),
      ...this.acting(row),
      ...this.section(say("What is missing, and why"), ...pieces),
      ...this.section(say("Problems"), ...troubles),
      ...this.rule(row),
      ...this.section(say("Counted evidence"), ...(counted.length ? counted : [element("li", {}, say("no file counts"))])),
      element("div", { className: "case", ariaBusy: "true" }),
      ...this.files(sale),
      element("section", {}, element("h3", {}, say("The sale")), this.facts(row)),
      this.command(sale),
    ];
  }

  // Who has to act, and by when.
  acting(row) {
    const { owners, columns } = this.page.words;
    const due = this.sales.cell("dueAt", row);
    const names = this.sales.list("owners", row).map((owner) => owners[owner] ?? owner);
    if (!due) return [];
    return [element("p", {}, `${say("Who has to act")}: `, element("strong", {}, names.join(", ")), `; ${columns.dueAt}: `, element("strong", {}, this.written(due.slice(0, 10))))];
  }

  // All other columns, by their names.
  facts(row) {
    const told = new Set(["saleId", "status", "missing", "reasons", "problems", "counted", ...this.page.notInCsv]);
    told.delete("dueAt");
    const names = this.page.words.columns;
    const list = element("dl", {});
    for (const [name, column] of this.sales.columns) {
      if (told.has(name)) continue;
      const text = this.fact(name, column, row);
      if (text !== "") list.append(element("div", {}, element("dt", {}, names[name] ?? name), element("dd", {}, text)));
    }
    return list;
  }

  fact(name, column, row) {
    const cell = column.cell(row);
    if (TIMES.test(cell)) return this.moment(cell);
    if (typeof cell === "number") return this.number(cell);
    if (name === "isClientFinancialResponsible") return { true: say("yes"), false: say("no") }[cell] ?? "";
    return cell;
  }
}
