(() => {
  "use strict";
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("payload").textContent);
  const PAGE = 200;
  root.classList.add("js");

  function say(words) { find("said").textContent = words; }

  /* Theme: what the system prefers, until somebody switches. */
  function startTheme() {
    const button = find("theme");
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const stored = () => { try { return localStorage.getItem("tamiz-theme"); } catch { return null; } };
    const current = () => root.dataset.theme || (system.matches ? "dark" : "light");
    const label = () => {
      const other = current() === "dark" ? "light" : "dark";
      button.textContent = other === "dark" ? "Dark" : "Light";
      button.setAttribute("aria-label", `Switch to the ${other} theme`);
    };
    if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      try { localStorage.setItem("tamiz-theme", root.dataset.theme); } catch { /* a page from disk may have no storage */ }
      label();
    });
    system.addEventListener("change", label);
    label();
  }

  /* Sorting: numbers by data-v, words by the reader's alphabet; cells without a value go last. */
  function cellValue(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.v === undefined) {
      const text = cell.textContent.trim();
      const plain = Number(text.replace("−", "-").replaceAll(",", ""));
      return text !== "" && !Number.isNaN(plain) ? plain : text;
    }
    return cell.dataset.v === "" || Number.isNaN(Number(cell.dataset.v)) ? null : Number(cell.dataset.v);
  }
  function compare(a, b, direction) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return (a - b) * direction;
    return String(a).localeCompare(String(b), undefined, { numeric: true }) * direction;
  }
  function makeSortable(table, before, after) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      if (header.classList.contains("plain")) return;
      const button = document.createElement("button");
      button.type = "button";
      // Browsers leave buttons out of the table heads they repeat on each printed page; plain words they print.
      const words = document.createElement("span");
      words.className = "for-print";
      words.textContent = header.textContent;
      button.append(...header.childNodes);
      header.append(button, words);
      button.addEventListener("click", () => {
        const up = header.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", up ? "ascending" : "descending");
        before();
        const rows = [...table.tBodies[0].rows].map((row) => [cellValue(row, column), row]);
        rows.sort((a, b) => compare(a[0], b[0], up ? 1 : -1));
        table.tBodies[0].append(...rows.map((entry) => entry[1]));
        say(`Sorted by ${button.textContent}, ${up ? "ascending" : "descending"}`);
        after();
      });
    });
  }

  /* CSV: the same rules as tamiz.report.text.csv_cell. */
  function csvCell(value) {
    let text = value === null || value === undefined ? "" : String(value);
    const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text);
    if (find("safe").checked && /^[=+\-@\t\r]/.test(text) && !number) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  function download(name, header, rows) {
    const text = [header, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
    const link = document.createElement("a");
    // The mark at the beginning tells spreadsheets that this is UTF-8.
    link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say(`Downloaded ${name}`);
  }
  function featureRow(i) {
    const kept = i < data.nKept;
    const ins = kept && data.standIns[i] ? data.standIns[i].map((s) => s[0]).join("; ") : null;
    return [i + 1, data.names[i], data.columns[i], kept, kept ? data.effects[i] : null, kept ? data.shares[i] : null, ins];
  }
  const HEADER = ["rank", "name", "column", "kept", "effect", "fold_share", "stand_ins"];

  const labels = new Map(), timers = new Map();
  async function copy(text, button) {
    const before = labels.get(button) || [...button.childNodes];
    labels.set(button, before);
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const words = done ? "Copied" : "Could not copy";
    button.replaceChildren(words);
    say(words);
    clearTimeout(timers.get(button));
    timers.set(button, setTimeout(() => { timers.delete(button); button.replaceChildren(...before); }, 1600));
  }

  /* The table of kept features: rows past the written ones are made here, and shown page by page. */
  function startFeatures(table) {
    const body = table.tBodies[0];
    const search = find("search"), more = find("more"), others = find("others");
    const nRows = Math.min(data.nKept, data.names.length);
    let limit = PAGE;
    function makeRow(i) {
      const row = body.rows[0].cloneNode(true);
      const put = (cell, value, shown) => {
        cell.dataset.v = value === null ? "" : value;
        cell.textContent = shown;
      };
      const cells = [...row.cells];
      put(cells.shift(), i + 1, i + 1);
      cells.shift().firstElementChild.textContent = data.names[i];
      put(cells.shift(), data.columns[i], data.columns[i]);
      const show = (value, words) => (value === null ? "–" : words(value));
      for (const cell of cells) {
        if (cell.classList.contains("stand-ins")) {
          cell.textContent = data.standIns[i].map((s) => `${s[0]} ${s[1]}`).join(", ");
        } else if (cell.dataset.kind === "effect") {
          put(cell, data.effects[i], show(data.effects[i], (v) => String(Number(v.toPrecision(3))).replace("-", "−")));
        } else {
          put(cell, data.shares[i], show(data.shares[i], (v) => `${Math.round(100 * v)}%`));
        }
      }
      return row;
    }
    function makeRows() {
      const made = [];
      for (let i = body.rows.length; i < nRows; i += 1) made.push(makeRow(i));
      if (made.length === 0) return;
      for (const row of made) row.hidden = true;
      body.append(...made);
      const cut = find("cut");
      if (cut) cut.remove();
    }

    function update() {
      makeRows();
      const wanted = search.value.trim().toLocaleLowerCase();
      let found = 0;
      for (const row of [...body.rows]) {
        const match = row.cells[1].textContent.toLocaleLowerCase().includes(wanted);
        if (match) found += 1;
        const hidden = !match || found > limit;
        if (row.hidden !== hidden) row.hidden = hidden;
      }
      more.hidden = found <= limit;
      find("count").textContent = wanted
        ? `${found.toLocaleString("en")} of ${data.nKept.toLocaleString("en")} kept features match`
        : `${data.nKept.toLocaleString("en")} kept features`;
      showOthers(wanted);
    }
    function showOthers(wanted) {
      const matches = [];
      if (wanted) {
        for (let i = data.nKept; i < data.names.length && matches.length <= 12; i += 1) {
          if (data.names[i].toLocaleLowerCase().includes(wanted)) matches.push(i);
        }
      }
      others.hidden = matches.length === 0;
      const listed = matches.slice(0, 12).map((i) => `${data.names[i]} (rank ${(i + 1).toLocaleString("en")})`);
      others.textContent = `Left out: ${listed.join(", ")}${matches.length > 12 ? " and more" : ""}`;
    }
    search.addEventListener("input", () => { limit = PAGE; update(); });
    more.addEventListener("click", () => { limit += PAGE; update(); });
    makeSortable(table, makeRows, update);
    find("copy-names").addEventListener("click", (event) => copy(data.names.slice(0, data.nKept).join("\n"), event.currentTarget));
    const rows = (n) => Array.from({ length: n }, (_, i) => featureRow(i));
    find("download").addEventListener("click", () => download("selected.csv", HEADER, rows(nRows)));
    const all = find("download-all");
    all.hidden = data.names.length < data.nFeatures;
    all.addEventListener("click", () => download("ranking.csv", HEADER, rows(data.names.length)));
    // Rows that were not written are made when they are first asked for, so that the page opens at once.
    find("count").textContent = `${data.nKept.toLocaleString("en")} kept features`;
    more.hidden = nRows <= body.rows.length;
  }

  /* Legends become switches for their series. */
  function startLegends() {
    for (const item of document.querySelectorAll(".legend li")) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      const legend = item.closest(".legend");
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const area of document.querySelectorAll(`[data-legend="${legend.id}"]`)) {
          for (const mark of area.querySelectorAll("[data-series]")) {
            if (mark.dataset.series === item.dataset.key) mark.classList.toggle("off", !on);
          }
        }
      });
    }
  }

  /* Values of the mark under or nearest to the pointer; arrow keys walk through them. */
  function startTips() {
    const tip = find("tip");
    let active = null;
    function show(mark, x, y) {
      if (active && active !== mark) active.classList.remove("active");
      active = mark;
      mark.classList.add("active");
      tip.textContent = mark.dataset.tip;
      tip.hidden = false;
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 8))}px`;
      tip.style.top = `${y - box.height - 12 < 4 ? y + 16 : y - box.height - 12}px`;
    }
    function hide() {
      tip.hidden = true;
      if (active) active.classList.remove("active");
      active = null;
    }
    const visible = (plot) => [...plot.querySelectorAll("[data-tip]")].filter((mark) => !mark.closest(".off"));
    function middle(mark) {
      const box = mark.getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    }
    function nearest(plot, x, y) {
      let best = null, distance = 28;
      for (const mark of visible(plot)) {
        if (mark.matches("path.path, .histogram")) continue;
        const [mx, my] = middle(mark);
        const away = Math.hypot(mx - x, my - y);
        if (away < distance) { best = mark; distance = away; }
      }
      return best;
    }
    for (const plot of document.querySelectorAll(".plot")) {
      if (!plot.querySelector("[data-tip]")) continue;
      plot.addEventListener("pointermove", (event) => {
        const mark = event.target.closest("[data-tip]") || nearest(plot, event.clientX, event.clientY);
        if (mark) show(mark, event.clientX, event.clientY); else hide();
      });
      plot.addEventListener("pointerleave", hide);
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-label", `${plot.querySelector("svg").getAttribute("aria-label")}; arrow keys read the values`);
      let at = -1;
      plot.addEventListener("keydown", (event) => {
        const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!move) return;
        event.preventDefault();
        const marks = visible(plot);
        at = (at + move + marks.length) % marks.length;
        show(marks[at], ...middle(marks[at]));
        say(marks[at].dataset.tip);
      });
      plot.addEventListener("blur", hide);
    }
    addEventListener("scroll", hide, { passive: true });
  }

  startTheme();
  for (const table of document.querySelectorAll("table.sortable:not(#features)")) makeSortable(table, () => {}, () => {});
  if (data.kind === "select") startFeatures(find("features"));
  else find("download").addEventListener("click", () => download(data.file || "scores.csv", data.header, data.rows));
  const command = find("copy-command");
  if (command) command.addEventListener("click", () => copy(find("command").textContent, command));
  startLegends();
  startTips();
})();
