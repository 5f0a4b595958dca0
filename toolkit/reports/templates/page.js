"use strict";
// Sorts and filters the table. The page is whole without it.
(() => {
  const table = document.querySelector("table.list");
  if (!table) return;
  const form = document.querySelector("form.filters");
  const found = document.querySelector("p.found");
  const body = table.tBodies[0];
  const lines = [...body.rows].map((row) => ({
    row,
    text: fold(row.textContent),
    lists: Object.fromEntries(
      ["status", "group", "missing", "reason", "problem"].map((name) => [name, row.dataset[name]]),
    ),
  }));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

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

  function sortBy(heading, place) {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const numbers = heading.dataset.sort === "number";
    const value = ({ row }) => {
      const cell = row.cells[place];
      return numbers ? Number(cell.dataset.value) : cell.textContent.trim();
    };
    const keyed = lines.map((line, order) => ({ line, order, key: value(line) }));
    keyed.sort((one, other) => {
      const way = numbers ? one.key - other.key : collator.compare(one.key, other.key);
      return (descending ? -way : way) || one.order - other.order;
    });
    body.append(...keyed.map(({ line }) => line.row));
  }

  [...table.tHead.rows[0].cells].forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(heading, place));
    heading.append(button);
  });
  offerGroups();
  form.hidden = found.hidden = false;
  form.addEventListener("input", narrow);
  form.addEventListener("reset", () => setTimeout(narrow));
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();
})();
