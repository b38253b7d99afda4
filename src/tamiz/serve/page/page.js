"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const page = crypto.randomUUID();  // one for each load: fits of other tabs are not disturbed
  const state = {table: null, columns: [], m: 10, target: null, network: "linear", keep: [], drop: []};
  let sizes = [1], running = null, wanted = false, timings = [], forcedLast = null, clock = null;
  const say = (text) => { $("said").textContent = text; };

  function problem(text) {
    $("problem").textContent = text || "";
    $("problem").hidden = !text;
  }

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") element.addEventListener("click", value); else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // ---- Theme -------------------------------------------------------------------------------------------------------
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (systemDark.matches ? "dark" : "light")) === "dark";
  function showTheme() {
    $("theme").textContent = isDark() ? "Light" : "Dark";
    $("theme").setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  }
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    sessionStorage.setItem("theme", document.documentElement.dataset.theme);
    showTheme();
  });
  systemDark.addEventListener("change", showTheme);

  // ---- Talking to the server ---------------------------------------------------------------------------------------
  async function ask(path, options) {
    let answer;
    try { answer = await fetch(path, options); }
    catch { throw new Error("The server does not answer. Is tamiz serve still running?"); }
    if (!answer.ok) {
      let text = `The server answered ${answer.status}.`;
      try { text = (await answer.json()).error || text; } catch { /* no JSON */ }
      throw new Error(text);
    }
    return answer;
  }

  function body() {
    const {table, target, m, network, keep, drop} = state;
    return JSON.stringify({page, table, target, m, network, keep, drop});
  }

  // The parts of an answer as they come: [kind, data].
  async function* parts(path, signal) {
    const answer = await ask(path, {method: "POST", body: body(), signal});
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = "";;) {
      const {value, done} = await reader.read();
      if (done) return;
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const lines = text.slice(0, end).split("\n");
        yield [lines[0].slice(7), JSON.parse(lines[1].slice(6))];
      }
    }
  }

  // A newer wish ends the older fit, but not before its list is there: otherwise a steady drag would show nothing.
  // The address holds what was chosen: a reload, or a link that somebody copied, shows the same.
  function remember() {
    const {table, target, m, network, keep, drop} = state;
    const said = new URLSearchParams({table, m, network});
    if (target !== null) said.set("target", target);
    for (const [key, names] of [["keep", keep], ["drop", drop]]) for (const name of names) said.append(key, name);
    history.replaceState(null, "", `#${said}`);
  }
  function recall() {
    const said = new URLSearchParams(location.hash.slice(1));
    if (!said.has("table")) return null;
    const m = said.get("m") === "auto" ? "auto" : Math.max(1, Math.round(Number(said.get("m"))) || 10);
    const found = {table: said.get("table"), m, network: said.get("network") || "linear", keep: said.getAll("keep"), drop: said.getAll("drop")};
    return said.has("target") ? {...found, target: said.get("target")} : found;
  }

  // What runs, and for how long.
  function busy(words, done = null, total = null) {
    const since = clock ? clock.since : performance.now();
    if (clock) clearInterval(clock.timer);
    clock = null;
    $("status").hidden = !words;
    if (!words) return;
    if (total) { $("bar").max = total; $("bar").value = done; } else $("bar").removeAttribute("value");
    const tell = () => {
      const seconds = Math.round((performance.now() - since) / 1000);
      $("status-words").textContent = `${words}${total ? `: ${done} of ${total}` : " …"}${seconds ? ` (${seconds} s)` : ""}`;
    };
    tell();
    clock = {since, timer: setInterval(tell, 1000)};
  }
  function refit() {
    remember();
    const open = state.m === "auto" || state.network === "auto";
    $("chosen").textContent = open ? "Choosing on inner folds …" : "";
    if (!clock) busy("Fitting");
    $("kept").dataset.done = "";
    if (running && !running.answered && performance.now() - running.started < 400) { wanted = true; return; }
    if (running) running.abort.abort();
    start();
  }

  async function start() {
    wanted = false;
    const mine = running = {abort: new AbortController(), answered: false, started: performance.now(), m: state.m};
    document.body.classList.add("stale");
    try {
      for await (const [kind, data] of parts("fit", mine.abort.signal)) {
        if (running !== mine) return;
        show(mine, kind, data);
      }
    } catch (error) {
      if (error.name !== "AbortError" && running === mine) { problem(error.message); }
    }
    if (running === mine) {
      running = null;
      busy();
      document.body.classList.remove("stale");
      if (wanted) start();
    }
  }

  function show(mine, kind, data) {
    if (kind === "chosen") {
      if (!wanted) Object.assign(state, {m: data.m, network: data.network});
      mine.m = data.m;
      $("network").value = state.network;
      $("chosen").textContent = data.words;
      say(data.words);
      remember();
    } else if (kind === "fit") {
      problem();
      showList(mine, data);
      document.body.classList.remove("stale");
      mine.answered = true;
      timings.push(performance.now() - mine.started);
      if (wanted) { mine.abort.abort(); start(); }
    } else if (kind === "progress") busy(data.stage[0].toUpperCase() + data.stage.slice(1), data.done, data.total);
    else if (kind === "heat") {
      draw("heat", data);
      $("heat-legend").replaceChildren(...data.legend.map(([swatch, name]) => make("li", {}, picture(swatch), make("bdi", {}, name))));
    } else if (kind === "score") showScore(data);
    else if (kind === "curve") draw("curve", data);
    else if (kind === "problem") { problem(data.message); mine.answered = true; }
    else if (kind === "done") finish(data);
  }

  // ---- Opening a table ---------------------------------------------------------------------------------------------
  let unread = null;  // a file that could not be read: other options may help
  async function upload(file, reading = {}) {
    if (!file) return;
    problem();
    clear(file.name);
    const headers = {"X-File-Name": encodeURIComponent(file.name), "X-Reading": encodeURIComponent(JSON.stringify(reading))};
    try {
      const answer = await ask("tables", {method: "POST", body: file, headers});
      unread = null;
      opened(await answer.json());
    } catch (error) {
      unread = file;
      busy();
      $("reading-part").hidden = false;
      problem(error.message);
      say("");
    }
  }

  // A new table: nothing of the old one stays on the page.
  function clear(name) {
    if (running) running.abort.abort();
    running = null;
    wanted = false;
    busy();
    $("work").hidden = true;
    $("title").textContent = name;
    $("headline").textContent = "";
    for (const id of ["verdict", "score-words", "chosen", "more"]) $(id).textContent = "";
    for (const id of ["alerts", "next", "notes", "heat", "curve", "heat-legend"]) $(id).replaceChildren();
    $("kept").tBodies[0].replaceChildren();
    $("score").textContent = "–";
    for (const id of ["code-part", "alerts-part", "heat-part", "curve-part"]) $(id).hidden = true;
    busy(`Reading ${name}`);
    say(`Reading ${name}`);
  }

  function opened(table, kept = null) {
    clear(table.name);
    busy();
    Object.assign(state, {table: table.table, columns: table.columns, target: table.target, keep: [], drop: [], m: 10}, kept || {});
    $("title").textContent = table.name;
    $("headline").textContent = `${table.rows.toLocaleString("en")} rows, ${table.columns.length.toLocaleString("en")} columns`;
    $("work").hidden = false;
    document.body.classList.add("loaded");
    $("target-part").hidden = table.hasTarget;
    $("target").value = state.target || "";
    $("network").value = state.network;
    showReading(table.reading);
    setSizes(Math.max(1, table.columns.length - (table.hasTarget ? 0 : 1)));
    showForced();
    refit();
  }

  function showReading(reading) {
    $("reading-part").hidden = false;
    $("delimiter").value = reading.delimiter || "";
    $("decimal").value = reading.decimal || ".";
    $("header").value = reading.header === undefined ? "" : reading.header ? "yes" : "no";
    $("skip-rows").value = reading.skip_rows || 0;
    $("missing").value = reading.missing;
    $("encoding").value = reading.encoding || "";
  }
  $("reading").addEventListener("submit", async (event) => {
    event.preventDefault();
    const reading = {
      delimiter: $("delimiter").value || null, decimal: $("decimal").value, skip_rows: Number($("skip-rows").value) || 0,
      header: {"": null, yes: true, no: false}[$("header").value], missing: $("missing").value.trim() || null, encoding: $("encoding").value.trim() || null,
    };
    problem();
    if (unread) { upload(unread, reading); return; }
    try {
      const answer = await ask(`tables/${encodeURIComponent(state.table)}/reading`, {method: "POST", body: JSON.stringify(reading)});
      opened(await answer.json());
      say("The file is read again");
    } catch (error) { problem(error.message); }
  });

  // Whole numbers to 30, then steps of about a tenth: a slider of 20,000 places could not be set to 12.
  function setSizes(most) {
    sizes = [];
    for (let m = 1; m < most; m += Math.max(1, Math.floor(m > 30 ? m / 10 : 1))) sizes.push(m);
    sizes.push(most);
    if (state.m !== "auto") state.m = Math.min(state.m, most);
    $("slider").max = sizes.length - 1;
    $("m").max = most;
    showM();
  }

  function showM() {
    if (state.m === "auto") return;
    let place = 0;
    sizes.forEach((size, i) => { if (size <= state.m) place = i; });
    $("slider").value = place;
    $("slider").setAttribute("aria-valuetext", `${state.m} column${state.m === 1 ? "" : "s"}`);
    $("m").value = state.m;
  }

  $("file").addEventListener("change", () => upload($("file").files[0]));
  let depth = 0;
  addEventListener("dragenter", (event) => { event.preventDefault(); depth += 1; document.body.classList.add("over"); });
  addEventListener("dragleave", () => { depth -= 1; if (depth <= 0) document.body.classList.remove("over"); });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("over");
    upload(event.dataTransfer.files[0]);
  });

  // ---- Choices -----------------------------------------------------------------------------------------------------
  $("slider").addEventListener("input", () => { state.m = sizes[$("slider").value]; showM(); refit(); });
  $("m").addEventListener("change", () => {
    const m = Math.round(Number($("m").value));
    if (m >= 1) { state.m = Math.min(m, Number($("m").max)); showM(); refit(); } else showM();
  });
  $("choose-m").addEventListener("click", () => { state.m = "auto"; refit(); });
  $("network").addEventListener("change", () => { state.network = $("network").value; refit(); });
  $("target").addEventListener("change", () => {
    if (!state.columns.includes($("target").value)) { problem(`There is no column “${$("target").value}”.`); return; }
    Object.assign(state, {target: $("target").value, keep: [], drop: []});
    showForced();
    refit();
  });

  // A list of 20,000 options would be slow: only what matches the typed text is offered.
  function offer(input, list) {
    const text = input.value.toLowerCase();
    const found = [];
    for (const name of state.columns) {
      if (name.toLowerCase().includes(text)) found.push(make("option", {value: name}));
      if (found.length >= 50) break;
    }
    list.replaceChildren(...found);
  }
  for (const [input, list] of [["target", "target-names"], ["force", "force-names"]]) {
    for (const event of ["input", "focus"]) $(input).addEventListener(event, () => offer($(input), $(list)));
  }
  $("force-in").addEventListener("click", () => {
    const name = $("force").value;
    if (!state.columns.includes(name) || name === state.target) { problem(`There is no column “${name}” to force in.`); return; }
    $("force").value = "";
    if (!state.keep.includes(name)) force(name, "keep");
  });

  function force(name, where) {
    const held = state[where].includes(name);
    state.keep = state.keep.filter((one) => one !== name);
    state.drop = state.drop.filter((one) => one !== name);
    if (!held) state[where].push(name);
    if (state.m !== "auto" && state.keep.length > state.m) { state.m = state.keep.length; showM(); }
    forcedLast = name;
    say(held ? `${name} is free` : `${name} is forced ${where === "keep" ? "in" : "out"}`);
    showForced();
    refit();
  }

  function showForced() {
    const items = [["keep", "in"], ["drop", "out"]].flatMap(([where, word]) => state[where].map((name) => make("li", {},
      make("button", {type: "button", "aria-label": `${name}, forced ${word}: set free`, onclick: () => force(name, where)}, `${name}: ${word} ✕`))));
    $("forced").replaceChildren(...items);
    $("forced").hidden = !items.length;
  }

  // ---- Results -----------------------------------------------------------------------------------------------------
  function showList(mine, data) {
    const largest = Math.max(1e-12, ...data.kept.map((one) => one.contribution));
    const focused = document.activeElement && document.activeElement.dataset.key;
    const rows = data.kept.map((one) => {
      const bar = make("span", {class: "bar"});
      bar.style.width = `${(100 * one.contribution / largest).toFixed(1)}%`;
      const button = (where, word) => make("button", {type: "button", "data-key": `${where} ${one.name}`, "aria-pressed": String(state[where].includes(one.name)),
        "aria-label": `Force ${one.name} ${word}`, onclick: () => force(one.name, where)}, word);
      const row = make("tr", {}, make("th", {scope: "row"}, make("bdi", {}, one.name)), make("td", {class: "bars"}, bar),
        make("td", {}, one.direction || "–"), make("td", {class: "num"}, "…"), make("td", {}, button("keep", "in"), button("drop", "out")));
      row.dataset.name = one.name;
      return row;
    });
    $("kept").tBodies[0].replaceChildren(...rows);
    $("next").replaceChildren(...data.next.map((name) => make("li", {},
      make("button", {type: "button", "aria-label": `Force ${name} in`, onclick: () => force(name, "keep")}, name))));
    $("next-title").hidden = !data.next.length;
    refocus(focused);
    $("notes").replaceChildren(...data.notes.map((note) => make("li", {}, note)));
    $("notes-part").hidden = !data.notes.length;
    $("headline").textContent = `${data.m.toLocaleString("en")} of ${data.columns.toLocaleString("en")} columns kept for “${data.target}”`;
    if (data.m < mine.m && !wanted) state.m = data.m;  // there are no more columns
    if (Number($("m").max) !== data.columns) setSizes(data.columns); else showM();
    $("more").textContent = data.kept.length < data.m ? `The first ${data.kept.length} are listed; the report holds all.` : "";
    showAlerts(data);
    $("score").textContent = "–";
    $("score-words").textContent = "";
    $("verdict").textContent = "";
    $("heat-part").hidden = data.m < 2;
    $("kept").dataset.m = data.m;
    $("kept").dataset.done = "";
  }

  // The button that was pressed may be gone with the old list: the focus goes to its successor, not to the top of the page.
  function refocus(key) {
    const buttons = [...document.querySelectorAll("[data-key]")];
    const find = (wanted) => buttons.find((one) => one.dataset.key === wanted);
    const lost = document.activeElement === document.body && forcedLast !== null;
    const next = key ? find(key) || (forcedLast !== null && $("force")) : lost && (find(`keep ${forcedLast}`) || $("force"));
    if (next) next.focus({preventScroll: true});
    forcedLast = null;
  }

  const number = (value, digits) => (value === null ? "–" : value.toFixed(digits));

  function showAlerts(data) {
    $("alerts").replaceChildren(...data.alerts.map((alert) => make("li", {}, alert)));
    $("alerts-part").hidden = !data.alerts.length;
  }

  function showScore(data) {
    showAlerts(data);
    $("score").textContent = number(data.score, 3);
    const others = data.others.filter((one) => one[1] !== null).map(([name, value]) => `${name} ${number(value, 3)}`);
    const parts = [`${data.metric} on held-out rows${data.shown ? ` (${data.shown})` : ""}`, ...(data.chance === null ? [] : [`chance ${number(data.chance, 3)}`]), ...others];
    if (data.stability !== null) parts.push(`stability ${number(data.stability, 2)}`);
    $("score-words").textContent = parts.join("; ");
    $("verdict").textContent = data.verdict;
    for (const row of $("kept").tBodies[0].rows) {
      row.cells[3].textContent = `${Math.round(data.shares[row.dataset.name] * data.folds)}/${data.folds}`;
    }
  }

  function finish(data) {
    $("kept").dataset.done = "yes";
    if (!data.folds) $("score-words").textContent = "A class has one row only: nothing can be held out.";
    say(`${$("headline").textContent}. ${data.folds ? `${$("score").textContent} ${$("score-words").textContent}` : ""}`);
  }

  // ---- Pictures, which the server draws ----------------------------------------------------------------------------
  function picture(markup) {
    return document.importNode(new DOMParser().parseFromString(markup.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"'), "image/svg+xml").documentElement, true);
  }
  function draw(id, data) {
    $(id).replaceChildren(make("div", {class: "plot wide-only"}, picture(data.wide)), make("div", {class: "plot narrow-only"}, picture(data.narrow)));
    $(`${id}-part`).hidden = false;
  }

  // ---- Export ------------------------------------------------------------------------------------------------------
  $("report").addEventListener("click", async () => {
    $("report").disabled = true;
    say("Writing the report");
    try {
      for await (const [kind, data] of parts("report")) {
        if (kind === "problem") throw new Error(data.message);
        if (kind !== "report") continue;
        const link = make("a", {href: URL.createObjectURL(new Blob([data.text], {type: "text/html"})), download: "report.html"});
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
        say("The report is downloaded");
      }
    } catch (error) { problem(error.message); }
    $("report").disabled = false;
  });
  $("code").addEventListener("click", async () => {
    try {
      const answer = await ask("code", {method: "POST", body: body()});
      $("code-text").textContent = (await answer.json()).code;
      $("code-part").hidden = false;
      say("The code is shown");
    } catch (error) { problem(error.message); }
  });
  $("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText($("code-text").textContent);
    say("Copied");
  });

  $("link").addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied; it works while tamiz serve runs");
    $("link").textContent = "Link copied";
    setTimeout(() => { $("link").textContent = "Copy a link to this"; }, 1600);
  });

  // ---- Start: what the address holds, or the file of the command ---------------------------------------------------
  async function openAddress() {
    const kept = recall();
    if (!kept || (kept.table === state.table && JSON.stringify(kept) === JSON.stringify(recall.last))) return false;
    recall.last = kept;
    try { opened(await (await ask(`tables/${encodeURIComponent(kept.table)}`)).json(), kept); return true; }
    catch (error) { problem(error.message); return false; }
  }
  addEventListener("hashchange", openAddress);  // a link that is pasted into an open page
  (async () => {
    const theme = sessionStorage.getItem("theme");
    if (theme) document.documentElement.dataset.theme = theme;
    showTheme();
    try {
      const settings = await (await ask("start")).json();
      $("network").replaceChildren(...settings.networks.map((name) => make("option", {value: name}, name)));
      if (await openAddress()) return;
      if (settings.table) opened(await (await ask(`tables/${settings.table}`)).json());
    } catch (error) { problem(error.message); }
  })();
  globalThis.tamizTimings = timings;  // milliseconds from each wish to its list, for the benchmark
})();
