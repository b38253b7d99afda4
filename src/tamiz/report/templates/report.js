(() => {
  "use strict";
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("payload").textContent);
  const PAGE = 200;
  root.classList.add("js");

  const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
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
      const plain = Number(text.replaceAll(",", ""));
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
    const alike = kept && data.clusters[i] ? data.clusters[i].join("; ") : null;
    return [i + 1, data.names[i], data.columns[i], kept, kept ? data.effects[i] : null, kept ? data.shares[i] : null, alike];
  }
  /* A column of the set that is kept with another M; share of folds and cluster are those of the selection. */
  function otherRow([i, effect], rank) {
    const [, name, column, , , share, alike] = featureRow(i);
    return [rank + 1, name, column, true, effect, share, alike];
  }
  const HEADER = ["rank", "name", "column", "kept", "effect", "fold_share", "same_information"];

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
    let other = null;
    const template = body.rows[0] ? body.rows[0].cloneNode(true) : null;
    const whole = spanOf(data.effects);
    const show = (value, words) => (value === null || value === undefined ? "–" : words(value));
    function makeRow(i, rank = i, effect = data.effects[i], span = whole) {
      const row = template.cloneNode(true);
      row.className = "";
      const put = (cell, value, shown) => {
        cell.dataset.v = value === null || value === undefined ? "" : value;
        cell.textContent = shown;
      };
      const cells = [...row.cells];
      put(cells.shift(), rank + 1, rank + 1);
      const name = cells.shift();
      name.replaceChildren(name.firstElementChild);
      name.firstElementChild.textContent = data.names[i];
      put(cells.shift(), data.columns[i], data.columns[i]);
      for (const cell of cells) {
        if (cell.dataset.kind === "bar") {
          fillBar(cell, effect, span);
        } else if (cell.dataset.kind === "direction") {
          cell.textContent = effect && data.signed && data.classes.length === 2 ? `higher → ${data.classes[effect > 0 ? 1 : 0]}` : "";
        } else if (cell.dataset.kind === "effect") {
          put(cell, effect, show(effect, (v) => Number(v.toPrecision(3)).toString()));
        } else if (cell.dataset.kind === "q") {
          put(cell, data.qValues[i], show(data.qValues[i], (v) => Number(v.toPrecision(3)).toString()));
        } else {
          const share = i < data.shares.length ? data.shares[i] : null;
          put(cell, share, show(share, (v) => `${Math.round(100 * v)}%`));
        }
      }
      return row;
    }
    /* The bar of an effect, as tamiz.report.charts draws it. */
    function fillBar(cell, effect, [low, high]) {
      cell.replaceChildren();
      if (effect === null || effect === undefined || high <= low) return;
      const space = "http://www.w3.org/2000/svg";
      const make = (name, values) => {
        const made = document.createElementNS(space, name);
        for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
        return made;
      };
      const place = (value) => 2 + (176 * (value - low)) / (high - low);
      const zero = place(0), at = place(effect);
      const svg = make("svg", { viewBox: "0 0 180 14", class: "bar effect", "aria-hidden": "true" });
      const size = { x: Math.min(zero, at), y: 2, width: Math.max(0.8, Math.abs(at - zero)), height: 10, rx: 1.5 };
      svg.append(make("rect", { ...size, class: `column s${low < 0 && effect > 0 ? 1 : 0}` }), make("line", { x1: zero, x2: zero, y1: 0, y2: 14, class: "axis" }));
      cell.append(svg);
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
      if (other === null) makeRows();
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
        ? `${found.toLocaleString("en")} of ${counted(data.nKept, "kept column")} match`
        : counted(Number(other ?? data.nKept), "kept column");
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
    makeSortable(table, () => { if (other === null) makeRows(); }, update);
    startSlider(body, (m) => { other = m; limit = PAGE; update(); }, makeRow);
    const shownNames = () => (other === null ? data.names.slice(0, data.nKept) : data.sets[other].map(([i]) => data.names[i]));
    find("copy-names").addEventListener("click", (event) => copy(shownNames().join("\n"), event.currentTarget));
    const rows = (n) => Array.from({ length: n }, (_, i) => featureRow(i));
    find("download").addEventListener("click", () => {
      if (other === null) download("selected.csv", HEADER, rows(nRows));
      else download(`selected-${other}.csv`, HEADER, data.sets[other].map(otherRow));
    });
    const all = find("download-all");
    all.hidden = data.names.length < data.nFeatures;
    all.addEventListener("click", () => download("ranking.csv", HEADER, rows(data.names.length)));
    // Rows that were not written are made when they are first asked for, so that the page opens at once.
    find("count").textContent = counted(data.nKept, "kept column");
    more.hidden = nRows <= body.rows.length;
  }

  /* Smallest and largest effect, with 0 between them; a loop, since thousands of arguments are too many for Math.min. */
  function spanOf(effects) {
    let low = 0, high = 0;
    for (const effect of effects) {
      low = Math.min(low, effect ?? 0);
      high = Math.max(high, effect ?? 0);
    }
    return [low, high];
  }

  /* The slider: for every M of the curve the page holds the set; list, marks and words follow. */
  function startSlider(body, refresh, makeRow) {
    const slider = find("m-slider");
    if (!slider) return;
    const sizes = slider.dataset.sizes.split(",").map(Number);
    const notice = find("other-m"), list = find("m-list");
    const chosen = data.effects.map((effect, i) => [i, effect]).slice(0, data.nKept);
    const setOf = (m) => (m === data.nKept ? chosen : data.sets[m]);
    let stored = null;
    function showList(m) {
      const set = setOf(m), mine = new Set(chosen.map((entry) => entry[0])), now = new Set(set.map((entry) => entry[0]));
      list.replaceChildren(...set.map(([i]) => {
        const item = document.createElement("li");
        item.textContent = data.names[i];
        if (!mine.has(i)) item.className = "new";
        return item;
      }));
      const gone = chosen.filter(([i]) => !now.has(i)).map(([i]) => data.names[i]);
      const came = set.filter(([i]) => !mine.has(i)).length;
      const mark = document.querySelector(`#curve [data-m="${m}"]`);
      const parts = [mark ? mark.dataset.tip : `M = ${m}`];
      if (came) parts.push(`${came} more than in the selection (dashed)`);
      if (gone.length) parts.push(`without ${gone.slice(0, 8).join(", ")}${gone.length > 8 ? ` and ${gone.length - 8} more` : ""}`);
      find("m-said").textContent = parts.join("; ");
    }
    function move() {
      const m = sizes[Number(slider.value)];
      find("m-value").textContent = m.toLocaleString("en");
      slider.setAttribute("aria-valuetext", counted(m, "column"));
      for (const mark of document.querySelectorAll("#curve [data-m]")) mark.classList.toggle("ring", Number(mark.dataset.m) === m);
      showList(m);
      notice.hidden = m === data.nKept;
      if (m === data.nKept) {
        if (stored) { body.replaceChildren(...stored); stored = null; }
        refresh(null);
        return;
      }
      find("other-m-said").textContent = `Shown: the ${counted(m, "column")} kept with M = ${m.toLocaleString("en")}, instead of ${data.nKept.toLocaleString("en")}.`;
      if (!stored) stored = [...body.rows];
      const span = spanOf(data.sets[m].map((entry) => entry[1]));
      body.replaceChildren(...data.sets[m].map(([i, effect], rank) => makeRow(i, rank, effect, span)));
      refresh(m);
    }
    function moveAll() {
      move();
      const m = sizes[Number(slider.value)];
      showChosen(m);
    }
    slider.addEventListener("input", moveAll);
    find("back-to-m").addEventListener("click", () => { slider.value = sizes.indexOf(data.nKept); moveAll(); slider.focus(); });
    showList(data.nKept);
  }

  /* Pictures that belong to the selection say so while the slider stands at another M. */
  function showChosen(m) {
    for (const section of document.querySelectorAll("section[data-of-selection]")) {
      let note = section.querySelector(".of-selection");
      if (!note) {
        note = document.createElement("p");
        note.className = "of-selection small-print";
        note.textContent = `Shown here: the selection, M = ${data.nKept.toLocaleString("en")}.`;
        section.querySelector("h2").after(note);
      }
      note.hidden = m === data.nKept;
    }
  }

  /* Pictures of many cells: the cell under the pointer, or the one that the arrow keys reach. */
  const grids = new Map();
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  function startGrids(tips) {
    for (const [key, grid] of Object.entries(data.grids || {})) grids.set(key, { ...grid, codes: decode(grid.codes) });
    for (const cells of document.querySelectorAll("[data-grid]")) {
      const grid = grids.get(cells.dataset.grid);
      const plot = cells.closest(".plot"), svg = cells.closest("svg");
      if (!grid) continue;
      const nColumns = grid.columns.length, last = () => grid.rows.length - 1;
      const cursor = svg.querySelector(".cursor");
      const size = (name) => Number(cells.getAttribute(name));
      let at = [0, -1];
      const words = ([row, column]) => {
        const code = grid.codes[row * nColumns + column];
        const value = code === 255 ? "missing" : `${grid.unit} = ${(((code - 127) / 127) * grid.largest).toFixed(2)}`;
        return `${grid.rows[row]}${grid.between ? ` ${grid.between} ` : ", "}${grid.columns[column]}: ${value}`;
      };
      const place = ([row, column]) => {
        const wide = size("width") / nColumns, high = size("height") / grid.rows.length;
        cursor.setAttribute("x", size("x") + wide * column);
        cursor.setAttribute("y", size("y") + high * row);
        cursor.setAttribute("width", wide);
        cursor.setAttribute("height", high);
        cursor.setAttribute("visibility", "visible");
      };
      const clear = () => { cursor.setAttribute("visibility", "hidden"); tips.hide(); };
      cells.addEventListener("pointermove", (event) => {
        const box = cells.getBoundingClientRect();
        at = [
          Math.min(last(), Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * grid.rows.length))),
          Math.min(nColumns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * nColumns))),
        ];
        place(at);
        tips.write(words(at), event.clientX, event.clientY);
      });
      cells.addEventListener("pointerleave", clear);
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-label", `${svg.getAttribute("aria-label")}; arrow keys read the cells`);
      plot.addEventListener("keydown", (event) => {
        const move = { ArrowRight: [0, 1], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowUp: [-1, 0] }[event.key];
        if (event.key === "Escape") clear();
        if (!move) return;
        event.preventDefault();
        at = [Math.min(last(), Math.max(0, at[0] + move[0])), Math.min(nColumns - 1, Math.max(0, at[1] + move[1]))];
        place(at);
        const box = cursor.getBoundingClientRect();
        tips.write(words(at), box.right, box.top);
        say(words(at));
      });
      plot.addEventListener("blur", clear);
    }
  }

  /* Legends become switches for their series. */
  function startLegends() {
    for (const item of document.querySelectorAll(".legend:not(.still) li")) {
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
      write(mark.dataset.tip, x, y);
    }
    function write(words, x, y) {
      tip.textContent = words;
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
        if (mark.matches("path.path, .histogram, .hit, path.line")) continue;
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
    return { write, hide };
  }

  startTheme();
  for (const table of document.querySelectorAll("table.sortable:not(#features)")) makeSortable(table, () => {}, () => {});
  if (data.kind === "select") startFeatures(find("features"));
  else find("download").addEventListener("click", () => download(data.file || "scores.csv", data.header, data.rows));
  const command = find("copy-command");
  if (command) command.addEventListener("click", () => copy(find("command").textContent, command));
  startLegends();
  startGrids(startTips());
})();
