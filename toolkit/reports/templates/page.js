"use strict";
// Sorts the tables and filters the sales. The page is whole without it.
(() => {
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  function makeSortable(table) {
    const headings = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows];

    function sortBy(heading, place) {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const numbers = heading.dataset.sort === "number";
      const value = (cell) => (numbers ? Number(cell.dataset.value) : (cell.dataset.value ?? cell.textContent.trim()));
      const keyed = rows.map((row, order) => ({ row, order, key: value(row.cells[place]) }));
      keyed.sort((one, other) => {
        const way = numbers ? one.key - other.key : collator.compare(one.key, other.key);
        return (descending ? -way : way) || one.order - other.order;
      });
      table.tBodies[0].append(...keyed.map(({ row }) => row));
    }

    headings.forEach((heading, place) => {
      // No <button>: a heading that holds one is not repeated on the pages of a print.
      const button = document.createElement("span");
      button.role = "button";
      button.tabIndex = 0;
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sortBy(heading, place));
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sortBy(heading, place);
      });
      heading.append(button);
    });
  }

  document.querySelectorAll("table.list").forEach(makeSortable);

  const table = document.querySelector("#sales table.list");
  if (!table) return;
  const form = document.querySelector("form.filters");
  const found = document.querySelector("p.found");
  const lines = [...table.tBodies[0].rows].map((row) => ({
    row,
    text: fold(`${row.textContent} ${bare(row.textContent)}`),
    lists: Object.fromEntries(
      ["status", "group", "missing", "reason", "problem"].map((name) => [name, row.dataset[name]]),
    ),
  }));

  // CPFs are searched for by their digits alone, too.
  function bare(text) {
    return text.replace(/[*.-]/g, "");
  }

  function fold(text) {
    return text.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase();
  }

  function offerGroups() {
    const groups = [...new Set(lines.map((line) => line.lists.group))].sort(collator.compare);
    for (const group of groups) form.elements.group.append(new Option(group || "(empty)", group || " "));
  }

  // A piece that is missing for the chosen reason: both must hold for the same piece.
  function hasPiece(lists, missing, reason) {
    const reasons = lists.reason.split(" ");
    return lists.missing
      .split(" ")
      .some((piece, place) => (!missing || piece === missing) && (!reason || reasons[place] === reason));
  }

  function narrow() {
    const wanted = Object.fromEntries(new FormData(form));
    const words = fold(wanted.text).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text, lists } of lines) {
      const fits =
        (!wanted.status || lists.status === wanted.status) &&
        (!wanted.group || (lists.group || " ") === wanted.group) &&
        (!(wanted.missing || wanted.reason) || hasPiece(lists, wanted.missing, wanted.reason)) &&
        (!wanted.problem || lists.problem.split(" ").includes(wanted.problem)) &&
        words.every((word) => text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    const all = lines.length.toLocaleString("en");
    found.textContent = shown === lines.length ? `${all} shown` : `${shown.toLocaleString("en")} of ${all} shown`;
  }

  offerGroups();
  form.hidden = found.hidden = false;
  form.addEventListener("input", narrow);
  form.addEventListener("reset", () => setTimeout(narrow));
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();
})();
