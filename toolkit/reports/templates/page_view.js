// The view: what is searched for, chosen and sorted by. It stands in the address after the #.

const CHOICES = ["status", "group", "missing", "reason", "problem", "partner", "owner", "age", "only"];
const PARTS = ["text", ...CHOICES, "sort", "sale"];

function viewOf(address) {
  const given = new URLSearchParams(address.replace(/^#/, ""));
  return Object.fromEntries(PARTS.map((name) => [name, given.get(name) ?? ""]));
}

function addressOf(view) {
  const told = new URLSearchParams();
  for (const name of PARTS) if (view[name]) told.set(name, view[name]);
  return `#${told}`;
}

class Finder {
  constructor(sales, page) {
    this.sales = sales;
    this.page = page;
    this.withFinding = new Set(page.fileFindings.flatMap((finding) => finding.sales));
    this.groups = new Set(["A", "B", "C", "D"]);
  }

  // The numbers of the rows that fit, in their order.
  find(view) {
    const tests = this.tests(view);
    const found = new Int32Array(this.sales.length);
    let count = 0;
    for (let row = 0; row < found.length; row += 1) {
      if (tests.every((fits) => fits(row))) found[count++] = row;
    }
    return this.sorted(found.slice(0, count), view.sort);
  }

  tests(view) {
    const { page } = this;
    const column = (name) => this.sales.columns.get(name);
    const tests = [];
    if (!["status", "problem", "owner", "only"].some((name) => view[name])) {
      tests.push(column("status").tester((status) => status !== page.compliant)); // those with a warning come when asked for
    }
    if (view.status) tests.push(column("status").tester((status) => status === view.status));
    if (view.group) {
      const unknown = view.group === page.unknownGroup;
      tests.push(column("utilityGroup").tester((group) => (unknown ? !this.groups.has(group) : group === view.group)));
    }
    if (view.missing || view.reason) tests.push(this.pieceTest(view));
    if (view.problem) tests.push(column("problems").tester((problems) => listed(problems).includes(view.problem)));
    if (view.partner) tests.push(column("partner").tester((partner) => partner === view.partner.trimEnd()));
    if (view.owner) tests.push(column("owners").tester((owners) => listed(owners).includes(view.owner)));
    if (view.age) {
      const last = new Map(page.ages);
      const before = [-1, ...last.values()];
      const from = view.age === page.older ? before.at(-1) : before[[...last.keys()].indexOf(view.age)];
      tests.push(column("ageDays").tester((days) => days > from && days <= (last.get(view.age) ?? Infinity)));
    }
    if (view.only === "unexamined") tests.push(column("unexamined").tester((files) => files > 0));
    if (view.only === "no-client") tests.push(column("clientId").tester((client) => client === ""));
    if (["overdue", "open", "critical", "waived"].includes(view.only)) tests.push(column(view.only).tester((findings) => findings > 0));
    if (view.only === "completed") tests.push(column("completedAt").tester((moment) => moment !== ""));
    if (view.only === "file-finding") tests.push(column("saleId").tester((sale) => this.withFinding.has(sale)));
    return [...tests, ...fold(view.text).split(/\s+/).filter(Boolean).map((word) => this.wordTest(word))];
  }

  // A piece that is missing for the chosen reason: both must hold for the same piece.
  pieceTest({ missing, reason }) {
    const [types, reasons] = ["missing", "reasons"].map((name) => this.sales.columns.get(name));
    const known = new Map();
    return (row) => {
      const both = `${types.cell(row)}\n${reasons.cell(row)}`;
      if (!known.has(both)) {
        const fits = this.sales.pieces(row).some(([type, why]) => (!missing || type === missing) && (!reason || why === reason));
        known.set(both, fits);
      }
      return known.get(both);
    };
  }

  // A word is looked for in what the row shows; a CPF is found by its digits alone, too.
  wordTest(word) {
    const { words } = this.page;
    const digits = word.replace(/[*.-]/g, "");
    this.warmUp();
    const names = Object.fromEntries(Object.entries(words.codes).map(([code, { name }]) => [code, name]));
    const named = (name, told) =>
      this.sales.columns.get(name).tester((cell) => fold(listed(cell).map((code) => told[code] ?? code).join(" ")).includes(word));
    const others = [
      named("partner", {}),
      named("utilityGroup", {}),
      named("status", words.statuses),
      named("missing", words.types),
      named("reasons", names),
      named("problems", names),
    ];
    const number = /^\d+$/.test(digits);
    return (row) =>
      others.some((fits) => fits(row)) ||
      this.saleIds[row].includes(word) ||
      (number && this.cpfs[row].includes(digits)) ||
      this.clientIds[row].startsWith(word);
  }

  // What is searched through, as it is compared; made before the first search.
  warmUp() {
    this.saleIds ??= this.folded("saleId", (sale) => sale);
    this.clientIds ??= this.folded("clientId", (client) => client);
    this.cpfs ??= this.folded("cpf", (cpf) => cpf.replace(/[*.-]/g, ""));
  }

  folded(name, bare) {
    const column = this.sales.columns.get(name);
    return Array.from({ length: this.sales.length }, (_, row) => fold(bare(column.cell(row))));
  }

  sorted(rows, sort) {
    if (!sort) return rows;
    const name = sort.replace(/^-/, "");
    const column = this.sales.columns.get(name);
    if (!column) return rows;
    const down = sort.startsWith("-") ? -1 : 1;
    const numbers = !column.values && typeof column.cells.find((cell) => cell !== null) === "number";
    const compare = numbers ? (one, other) => column.cell(one) - column.cell(other) : this.textOrder(name, column);
    const empty = column.tester((cell) => cell === "");
    return rows.sort((one, other) => empty(one) - empty(other) || down * compare(one, other) || one - other);
  }

  // As people count: S-9 before S-10. Each text gets its place once, because comparing texts is slow.
  textOrder(name, column) {
    this.places ??= new Map();
    if (!this.places.has(name)) {
      const texts = [...new Set(Array.from({ length: column.length }, (_, row) => column.cell(row)))];
      const keyed = texts.map((text) => [fold(text).replace(/\d+/g, (digits) => digits.padStart(20, "0")), text]);
      keyed.sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
      this.places.set(name, new Map(keyed.map(([, text], place) => [text, place])));
    }
    const place = this.places.get(name);
    return (one, other) => place.get(column.cell(one)) - place.get(column.cell(other));
  }
}
