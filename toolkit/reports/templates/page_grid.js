// A grid that draws only the rows that are seen. Rows have the height of the lines that they show.

const TALLEST = 8_000_000; // pixels that every browser can scroll through; longer grids are scrolled in larger steps
const LINE = 1.375; // rem; the style sheet has the same
const PADDING = 1.1;
const OPEN_ROWS = 36; // rem that the grid takes at most

class Grid {
  constructor(place, headings, drawRow, linesOf, actions) {
    this.drawRow = drawRow;
    this.linesOf = linesOf;
    this.actions = actions;
    this.columns = headings.length;
    this.rows = new Int32Array(0);
    this.active = [0, 0];
    this.head = element("div", { className: "line head", role: "row", ariaRowIndex: "1" });
    headings.forEach(({ name, label, className }, place) => {
      const button = element("button", { type: "button" }, label);
      if (name) button.addEventListener("click", () => actions.sort(name));
      const heading = element("div", { role: "columnheader", className: className ?? "", ariaColIndex: `${place + 1}` });
      heading.append(name ? button : label);
      heading.dataset.name = name ?? "";
      this.head.append(heading);
    });
    this.sizer = element("div", { className: "sizer", role: "presentation" });
    this.view = element("div", { className: "view", role: "rowgroup", tabIndex: -1 }, this.sizer);
    place.append(element("div", { role: "rowgroup" }, this.head), this.view);
    place.ariaColCount = `${this.columns}`;
    this.place = place;
    this.view.addEventListener("scroll", () => this.draw());
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("focusin", (event) => this.follow(event.target));
    this.view.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.measure()).observe(place);
  }

  show(rows, sort) {
    this.rows = rows;
    this.active = [0, 0];
    this.place.ariaRowCount = `${rows.length + 1}`;
    for (const heading of this.head.children) {
      const name = heading.dataset.name;
      if (name && name === sort.replace(/^-/, "")) heading.ariaSort = sort.startsWith("-") ? "descending" : "ascending";
      else heading.removeAttribute("aria-sort");
    }
    this.view.scrollTop = 0;
    this.measure();
  }

  // Where each row begins, and how far the grid can be scrolled.
  measure() {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const more = Number(getComputedStyle(this.place).getPropertyValue("--more-lines")) || 0;
    this.tops = new Float64Array(this.rows.length + 1);
    for (let at = 0; at < this.rows.length; at += 1) {
      this.tops[at + 1] = this.tops[at] + Math.round((PADDING + LINE * (this.linesOf(this.rows[at]) + more)) * rem);
    }
    const total = this.tops[this.rows.length];
    this.height = Math.min(total, OPEN_ROWS * rem, Math.max(window.innerHeight * 0.8, 12 * rem));
    this.view.style.height = `${this.height}px`;
    this.scrolled = Math.min(total, TALLEST);
    this.sizer.style.height = `${this.scrolled}px`;
    this.factor = total > TALLEST ? (total - this.height) / (TALLEST - this.height) : 1;
    this.drawn = null;
    this.draw();
  }

  draw() {
    const top = this.view.scrollTop * this.factor;
    const first = Math.max(this.rowAt(top) - 2, 0);
    const last = Math.min(this.rowAt(top + this.height) + 3, this.rows.length);
    const moved = this.tops[first] - top + this.view.scrollTop;
    if (this.drawn !== `${first} ${last}`) {
      const held = this.view.contains(document.activeElement);
      this.sizer.replaceChildren(...Array.from({ length: last - first }, (_, place) => this.line(first + place)));
      this.drawn = `${first} ${last}`;
      if (held) (this.cellAt(...this.active) ?? this.view).focus({ preventScroll: true });
    }
    let offset = moved;
    for (const line of this.sizer.children) {
      line.style.top = `${offset}px`;
      offset += this.tops[Number(line.dataset.at) + 1] - this.tops[Number(line.dataset.at)];
    }
    if (!this.cellAt(...this.active)) this.makeReachable();
  }

  line(at) {
    const line = element("div", { className: "line", role: "row", ariaRowIndex: `${at + 2}` });
    line.dataset.at = at;
    line.style.height = `${this.tops[at + 1] - this.tops[at]}px`;
    this.drawRow(this.rows[at]).forEach((cell, place) => {
      cell.role = place ? "gridcell" : "rowheader";
      cell.ariaColIndex = `${place + 1}`;
      cell.dataset.label = this.head.children[place].textContent;
      const target = cell.querySelector("a") ?? cell;
      target.tabIndex = at === this.active[0] && place === this.active[1] ? 0 : -1;
      line.append(cell);
    });
    return line;
  }

  rowAt(top) {
    let low = 0;
    let high = Math.max(this.rows.length - 1, 0);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= top) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // Where the active row is out of sight, the first one in sight can be reached by Tab.
  makeReachable() {
    const line = this.sizer.children[Math.min(2, this.sizer.children.length - 1)];
    if (!line) return;
    this.active = [Number(line.dataset.at), 0];
    this.cellAt(...this.active).tabIndex = 0;
  }

  cellAt(row, column) {
    const line = [...this.sizer.children].find((each) => Number(each.dataset.at) === row);
    const cell = line?.children[column];
    return cell && (cell.querySelector("a") ?? cell);
  }

  // Whatever gets the focus is where the arrows start from.
  follow(target) {
    const line = target.closest(".line");
    if (!line) return;
    const column = [...line.children].findIndex((cell) => cell.contains(target));
    this.sizer.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    this.active = [Number(line.dataset.at), column];
    target.tabIndex = 0;
  }

  key(event) {
    const [row, column] = this.active;
    const page = Math.max(this.rowAt(this.view.scrollTop * this.factor + this.height) - this.rowAt(this.view.scrollTop * this.factor) - 1, 1);
    const end = this.rows.length - 1;
    const moves = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: event.ctrlKey ? [0, 0] : [row, 0],
      End: event.ctrlKey ? [end, this.columns - 1] : [row, this.columns - 1],
    };
    if (event.key === "Enter" || event.key === " ") this.actions.open(this.rows[row]);
    else if (moves[event.key]) this.goTo(...moves[event.key]);
    else return;
    event.preventDefault();
  }

  goTo(row, column) {
    const at = Math.min(Math.max(row, 0), this.rows.length - 1);
    this.cellAt(...this.active)?.setAttribute("tabindex", "-1");
    this.active = [at, Math.min(Math.max(column, 0), this.columns - 1)];
    this.reveal(at);
    const cell = this.cellAt(...this.active);
    if (!cell) return;
    cell.tabIndex = 0;
    cell.focus({ preventScroll: true });
  }

  reveal(at) {
    const top = this.view.scrollTop * this.factor;
    if (this.tops[at] < top) this.view.scrollTop = this.tops[at] / this.factor;
    else if (this.tops[at + 1] > top + this.height) this.view.scrollTop = Math.ceil((this.tops[at + 1] - this.height) / this.factor);
    this.draw();
  }

  click(event) {
    const line = event.target.closest(".line");
    if (!line || event.ctrlKey || event.metaKey || event.shiftKey || String(getSelection())) return;
    event.preventDefault();
    this.active = [Number(line.dataset.at), 0];
    this.actions.open(this.rows[this.active[0]]);
  }
}
