// The page without this script has the figures and the first sales; with it, all sales.
(() => {
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  if (document.getElementById("data")) readPage().then(start);

  function start(page) {
    sentences = page.words.sentences;
    const sales = new Sales(page);
    const finder = new Finder(sales, page);
    const writer = new SaleWriter(sales, page);
    const cases = new Cases(page.cases);
    const caseWriter = new CaseWriter(writer);
    const form = document.querySelector("form.filters");
    const found = document.querySelector("p.found");
    const printed = document.querySelector("p.printed");
    const table = document.querySelector("table.plain");
    const dialog = document.getElementById("sale");
    const number = (value) => value.toLocaleString(page.language);
    let view = viewOf(location.hash);
    let rows = [];

    const headings = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    const names = ["saleId", "utilityGroup", "status", "missing", "partner", "ageDays", "completedAt"];
    const classes = ["id", "group", "state", "what", "who", "count", "done"];
    const place = document.querySelector(".grid");
    const grid = new Grid(
      place,
      names.map((name, at) => ({ name, label: headings[at], className: classes[at] })),
      (row) => writer.gridCells(row, addressOf({ ...view, sale: sales.cell("saleId", row) })),
      (row) => writer.lines(row),
      {
        sort: (name) => look({ ...view, sort: view.sort === name ? `-${name}` : name }),
        open: (row) => look({ ...view, sale: sales.cell("saleId", row) }, true),
      },
    );
    for (const [at, name] of names.entries()) {
      form.elements.sort.append(new Option(`${headings[at]} \u2191`, name), new Option(`${headings[at]} \u2193`, `-${name}`));
    }
    form.elements.sort.append(new Option(page.words.columns.dueAt, "dueAt"));

    // Takes a view over: into the address, the form, the grid and the panel. From a sale that is opened in the grid the
    // browser leads back to the grid.
    function look(wanted, opens = false) {
      const before = view;
      view = wanted;
      const address = addressOf(view);
      if (opens) history.pushState({ opened: true }, "", address);
      else if (address !== "#" || location.hash.includes("=")) history.replaceState(history.state, "", address);
      for (const name of ["text", ...CHOICES, "sort"]) if (form.elements[name].value !== view[name]) form.elements[name].value = view[name];
      if (!rows.shown || [...CHOICES, "text", "sort"].some((name) => view[name] !== before[name])) refill();
      showSale();
    }

    function refill() {
      rows = finder.find(view);
      rows.shown = true;
      grid.show(rows, view.sort);
      const open = rows.filter((row) => row < page.open).length; // the others, behind them, are compliant
      const counts = { shown: number(open), all: number(page.open), compliant: number(rows.length - open) };
      const unfiltered = !chosen() && rows.length === page.open;
      if (!rows.length) found.textContent = say("No sale fits these choices.");
      else if (open < rows.length) found.textContent = say("{shown} of {all} that are not compliant, and {compliant} compliant", counts);
      else found.textContent = unfiltered ? say("{all} shown", counts) : say("{shown} of {all} shown", counts);
    }

    function showSale() {
      if (!view.sale) return dialog.open && dialog.close();
      const known = sales.columns.get("saleId");
      let row = 0;
      while (row < sales.length && known.cell(row) !== view.sale) row += 1;
      dialog.querySelector(".sale").replaceChildren(...(row < sales.length ? writer.panel(row) : writer.panelOfOther(view.sale)));
      if (row < sales.length) showCase(row, dialog.querySelector(".case"));
      if (!dialog.open) dialog.showModal();
      dialog.scrollTop = 0;
      return undefined;
    }

    async function showCase(row, waiting) {
      try {
        waiting.append(...caseWriter.sections(await cases.of(row)));
      } catch {
        waiting.append(element("p", {}, say("The records and the time line cannot be read: the file of this page is not whole.")));
      }
      waiting.ariaBusy = "false";
    }

    function chosen() {
      const told = [];
      for (const control of form.elements) {
        if (!control.name || !control.value || ["save", "sort"].includes(control.name)) continue;
        const value = control.selectedOptions ? control.selectedOptions[0].text : control.value;
        told.push(`${control.labels[0].firstChild.textContent.trim()}: ${value}`);
      }
      return told.join("; ");
    }

    // A dialog is never longer than one sheet of paper; a copy of what it holds is.
    function prepareToPrint() {
      const copy = dialog.querySelector(".sale").cloneNode(true);
      copy.querySelector("#sale-name")?.removeAttribute("id");
      document.querySelector("body > .sale").replaceChildren(...(dialog.open ? copy.childNodes : []));
      const shown = Array.from(rows.subarray(0, page.printed), (row) => writer.printedRow(row));
      table.tBodies[0].replaceChildren(...shown);
      const filters = chosen();
      const counts = { filters, shown: number(rows.length), all: number(page.open), printed: number(page.printed) };
      const told = [];
      if (filters) told.push(say("Printed as filtered ({filters}): {shown} of {all} sales. The sentence on top is of all sales.", counts));
      document.documentElement.classList.toggle("filtered", Boolean(filters));
      if (rows.length > page.printed) told.push(say("Only the first {printed} of {shown} sales are printed.", counts));
      printed.textContent = told.join(" ");
      printed.hidden = !told.length;
    }

    function save() {
      const file = new Blob(["", sales.csv(rows)], { type: "text/csv;charset=utf-8" });
      const link = element("a", { href: URL.createObjectURL(file), download: "missing-evidence-filtered.csv" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }

    const typed = () => Object.fromEntries(["text", ...CHOICES, "sort"].map((name) => [name, form.elements[name].value]));
    form.addEventListener("input", () => look({ ...view, ...typed() }));
    form.addEventListener("reset", (event) => {
      event.preventDefault(); // the browser empties the form after this: what is chosen right behind it would be lost
      look(viewOf(""));
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.elements.save.addEventListener("click", save);
    dialog.addEventListener("close", () => {
      if (!view.sale) return;
      if (history.state?.opened) history.back();
      else look({ ...view, sale: "" });
    });
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    addEventListener("beforeprint", prepareToPrint);
    addEventListener("hashchange", () => {
      if (location.hash && !location.hash.includes("=") && !view.sale) return; // a place in the page
      look(viewOf(location.hash));
      if (!view.sale && location.hash) document.getElementById("sales").scrollIntoView();
    });

    // A frame with an origin of its own, as JupyterLab's, blocks downloads and reads no other file.
    if (self !== top && origin === "null") {
      for (const link of document.querySelectorAll("a.file")) link.replaceWith(link.textContent);
      form.elements.save.hidden = true;
      document.querySelector(".framed").hidden = false;
    }
    document.documentElement.classList.add("with-grid");
    form.hidden = found.hidden = place.hidden = false;
    look(view);
    setTimeout(() => finder.warmUp(), 100);
    if (location.hash.includes("=") && !view.sale) document.getElementById("sales").scrollIntoView();
  }
})();
