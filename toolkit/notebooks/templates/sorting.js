(name, word) => {
  for (const place of document.getElementsByClassName(name)) {
    const table = place.querySelector("table");
    if (!table || place.dataset.ready) continue;
    place.dataset.ready = "yes";
    const rows = [...table.tBodies[0].rows];
    const value = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent;
    [...table.tHead.rows[0].cells].forEach((heading, at) => {
      let way = -1;
      heading.tabIndex = 0;
      heading.style.cursor = "pointer";
      const sort = () => {
        way = -way;
        const compare = new Intl.Collator(undefined, { numeric: true }).compare;
        rows.sort((one, other) => way * compare(value(one, at), value(other, at)));
        table.tBodies[0].append(...rows);
      };
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
    const filter = Object.assign(document.createElement("input"), { type: "search", placeholder: word });
    filter.setAttribute("aria-label", word);
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    if (rows.length > 5) place.before(filter);
  }
}
