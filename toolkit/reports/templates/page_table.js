// A table that is sorted by its headings: in the page, and in what notebooks show.
function makeSortable(table) {
  const collator = new Intl.Collator(document.documentElement.lang || undefined, { numeric: true, sensitivity: "base" });
  const headings = [...table.tHead.querySelectorAll("th")].filter((heading) => heading.textContent.trim());
  const rows = [...table.tBodies[0].rows];
  const sortBy = (heading) => {
    const descending = heading.ariaSort === "ascending";
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.ariaSort = descending ? "descending" : "ascending";
    const key = (cell) => cell.dataset.value ?? cell.textContent.trim();
    const keyed = rows.map((row, order) => ({ row, order, key: key(row.cells[heading.cellIndex]) }));
    const compare = (one, other) => one - other || collator.compare(one, other);
    keyed.sort((one, other) => (descending ? -1 : 1) * compare(one.key, other.key) || one.order - other.order);
    table.tBodies[0].append(...keyed.map(({ row }) => row));
  };
  const body = table.tBodies[0]; // on a narrow screen it scrolls, by keys too
  new ResizeObserver(() => (body.scrollHeight > body.clientHeight ? (body.tabIndex = 0) : body.removeAttribute("tabindex"))).observe(body);
  for (const heading of headings) {
    // No <button>: a heading that holds one is not repeated on the pages of a print.
    const button = Object.assign(document.createElement("span"), { role: "button", tabIndex: 0 });
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(heading));
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation(); // keys of a notebook are commands
      sortBy(heading);
    });
    heading.append(button);
  }
}
