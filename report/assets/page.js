"use strict";
// Draws the page's charts from the numbers in it; with a live dashboard, asks for news and redraws.
(() => {
  const element = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(element(id).textContent);
  const data = read("chart-data");
  const live = read("live-data");
  const GIB = 1 / (1 << 30);
  const TRAINING = [
    {key: "loss", title: "Training loss", unit: "nats a token", smooth: true, log: true, first: true},
    {key: "loss", title: "Difference of training loss", unit: "first run less each other, nats a token", differences: true},
    {key: "grad_norm", title: "Gradient norm", unit: "before clipping"},
    {key: "lr", title: "Learning rate", unit: ""},
    {key: "tokens_per_s", title: "Throughput", unit: "tokens a second"},
    {key: "mfu", title: "Model FLOPs utilisation", unit: "% of the measured peak", scale: 100},
    {key: "memory_bytes", title: "Resident memory", unit: "GiB", scale: GIB},
    {key: "seconds", title: "Time of a step", unit: "seconds"},
    {key: "data_seconds", title: "Waiting for data", unit: "seconds of a step"},
  ];
  const state = {smoothing: 0, logarithmic: false, zoom: null, hidden: new Set(), moving: false};
  let charts = [];

  // Colours, from the style sheet, so that both themes have theirs.
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const runColour = (run) => style(`--run-${(run % 6) + 1}`);
  const dash = (run) => (run < 6 ? [] : run < 12 ? [8, 4] : [2, 3]);
  const faded = (colour, share) => colour + Math.round(share * 255).toString(16).padStart(2, "0");

  const number = (value, digits) => {
    if (value == null || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size < 1e-3 || size >= 1e7) return value.toExponential(Math.max(0, digits - 3)).replace("e+", "e");
    return String(+value.toPrecision(digits));
  };
  const stepText = (step) => (step >= 1e6 ? `${+(step / 1e6).toPrecision(4)}M`
    : step >= 1e4 ? `${+(step / 1e3).toPrecision(4)}k` : String(step));

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // An exponential average whose memory is counted in steps, so that thinned curves agree with whole ones.
  function smoothed(steps, values, span) {
    let average = null;
    let before = 0;
    return values.map((value, i) => {
      if (value == null) return null;
      average = average == null ? value : average + (1 - Math.exp((before - steps[i]) / span)) * (value - average);
      before = steps[i];
      return average;
    });
  }

  // What a training chart draws, a table a run: steps, line, smoothed line, band's edges.
  function tablesOf(chart) {
    const lines = chart.differences
      ? data.differences.map((each) => ({run: each.run, curve: each}))
      : data.runs.map((run, i) => ({run: i, curve: run}));
    const positive = chart.log && state.logarithmic;
    return lines.filter(({curve}) => curve.columns[chart.key] && curve.step.length > 0).map(({run, curve}) => {
      const column = curve.columns[chart.key];
      const scale = chart.scale || 1;
      const take = (list) => (list || curve.step.map(() => null)).map(
        (value) => (value == null || (positive && value <= 0) ? null : value * scale));
      const mean = take(column.mean);
      const smooth = chart.smooth && state.smoothing > 0 ? smoothed(curve.step, mean, state.smoothing) : null;
      return {run, steps: curve.step, mean, smooth, min: take(column.min), max: take(column.max)};
    });
  }
  const LINES = 4;  // mean, smooth, min, max
  const alignedData = (tables) => (tables.length === 0 ? [[]] : uPlot.join(
    tables.map((t) => [t.steps, t.mean, t.smooth || t.steps.map(() => null), t.min, t.max])));

  function seriesOf(tables) {
    const series = [{}];
    for (const table of tables) {
      const colour = runColour(table.run);
      const shared = {show: !state.hidden.has(table.run), spanGaps: false, dash: dash(table.run)};
      const lone = table.steps.length < 40;
      series.push(
        {...shared, stroke: table.smooth ? faded(colour, 0.35) : colour, width: table.smooth ? 1 : 1.5, points: {show: lone, size: 4}},
        {...shared, stroke: colour, width: 2, points: {show: false}},
        {...shared, stroke: null, width: 0, points: {show: false}},
        {...shared, stroke: null, width: 0, points: {show: false}});
    }
    return series;
  }

  function bandsOf(tables) {
    return tables.map((table, i) => ({
      series: [i * LINES + 4, i * LINES + 3], fill: faded(runColour(table.run), 0.2),
    }));
  }

  function axes(chart) {
    const shared = {stroke: style("--faint"), grid: {stroke: style("--grid"), width: 1}, ticks: {stroke: style("--grid"), width: 1}, font: "12px system-ui, sans-serif"};
    const wide = (u, values) => 24 + 7 * Math.max(3, ...(values || []).map((value) => (value || "").length));
    return [
      {...shared, size: 32, values: (u, ticks) => ticks.map(stepText), incrs: [1, 2, 5].flatMap((m) => [...Array(13).keys()].map((p) => m * 10 ** p)).sort((a, b) => a - b)},
      {...shared, size: wide, values: (u, ticks) => ticks.map((tick) => (tick == null ? "" : number(tick, chart.digits || 4)))},
    ];
  }

  // Checkpoints, resumes and forks.
  function drawMarks(u, runs) {
    const {ctx, bbox} = u;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `bold ${11 * ratio}px system-ui, sans-serif`;
    runs.forEach((run, row) => {
      if (state.hidden.has(run)) return;
      ctx.fillStyle = ctx.strokeStyle = runColour(run);
      let last = -Infinity;
      for (const mark of data.runs[run].marks) {
        const x = u.valToPos(mark.step, "x", true);
        if (x < bbox.left - 9 || x > bbox.left + bbox.width + 9) continue;
        if (mark.kind === "save") {
          if (x - last < 4 * ratio) continue;
          last = x;
          const bottom = bbox.top + bbox.height - (row % 4) * 8 * ratio;
          ctx.beginPath();
          ctx.moveTo(x, bottom - 7 * ratio);
          ctx.lineTo(x - 4 * ratio, bottom);
          ctx.lineTo(x + 4 * ratio, bottom);
          ctx.fill();
          continue;
        }
        ctx.lineWidth = ratio;
        ctx.setLineDash([4 * ratio, 4 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.fillText(mark.kind === "fork" ? "F" : "R", x + 3 * ratio, bbox.top + 12 * ratio);
      }
    });
    ctx.restore();
  }

  function drawErrorBars(u, lines) {
    const {ctx, bbox} = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.5 * devicePixelRatio;
    const cap = 4 * devicePixelRatio;
    lines.forEach(({run}, i) => {
      if (state.hidden.has(run)) return;
      ctx.strokeStyle = runColour(run);
      u.data[0].forEach((step, k) => {
        const low = u.data[3 * i + 2][k];
        const high = u.data[3 * i + 3][k];
        if (low == null || high == null) return;
        const x = u.valToPos(step, "x", true);
        const top = u.valToPos(high, "y", true);
        const bottom = u.valToPos(low, "y", true);
        ctx.beginPath();
        for (const y of [top, bottom]) {
          ctx.moveTo(x - cap, y);
          ctx.lineTo(x + cap, y);
        }
        ctx.moveTo(x, top);
        ctx.lineTo(x, bottom);
        ctx.stroke();
      });
    });
    ctx.restore();
  }

  // Says in text what the cursor points at.
  function readout(u, place, lines, stride) {
    const at = u.cursor.idx;
    place.textContent = "";
    if (at == null || u.data[0].length === 0) return;
    place.append(`step ${u.data[0][at].toLocaleString("en")}`);
    lines.forEach(({run, smooth}, i) => {
      const value = u.data[stride * i + 1][at];
      if (value == null || state.hidden.has(run)) return;
      place.append(" ", swatch(run), `${data.runs[run].name} ${number(value, 6)}`);
      const average = smooth ? u.data[stride * i + 2][at] : null;
      if (average != null) place.append(` (smooth ${number(average, 5)})`);
    });
  }
  const swatch = (run) => make("span", {class: `swatch run-${(run % 6) + 1}`, "aria-hidden": "true"});

  function fillTable(place, steps, names, columns) {
    const MOST = 200;
    const stride = Math.max(1, Math.ceil(steps.length / MOST));
    const head = make("tr", {}, ...["Step", ...names].map((name) => make("th", {scope: "col"}, name)));
    const body = make("tbody", {});
    for (let i = (steps.length - 1) % stride; i < steps.length; i += stride) {
      body.append(make("tr", {}, make("th", {scope: "row", class: "number"}, steps[i].toLocaleString("en")),
        ...columns.map((column) => make("td", {class: "number"}, number(column[i], 6)))));
    }
    const note = stride > 1 ? `one of ${stride} points` : "all points";
    place.replaceChildren(make("div", {class: "scroll", role: "region", tabindex: "0", "aria-label": "Values"},
      make("table", {}, make("caption", {}, note), make("thead", {}, head), body)));
  }

  function figureOf(title, unit, summary, first) {
    const plot = make("div", {class: "plot", role: "img", "aria-label": summary});
    const values = make("div", {class: "readout"});
    const table = make("div", {});
    const details = make("details", {}, make("summary", {}, "Table"), table);
    const caption = make("figcaption", {}, make("h3", {}, title), " ", make("span", {}, unit));
    return {figure: make("figure", first ? {class: "first"} : {}, caption, plot, values, details), plot, values, table, details};
  }

  function setZoom(from, to, origin) {
    // The charts answer to being moved later: what is so already must end here.
    const known = state.zoom || [null, null];
    if (state.moving || (from === known[0] && to === known[1] && origin)) return;
    state.moving = true;
    state.zoom = from == null ? null : [from, to];
    for (const chart of charts) {
      if (!chart.training || chart.plot === origin) continue;
      const steps = chart.plot.data[0];
      if (steps.length === 0) continue;
      const [low, high] = state.zoom || [steps[0], steps[steps.length - 1]];
      if (low < high) chart.plot.setScale("x", {min: low, max: high});
    }
    element("from").value = state.zoom ? Math.round(from) : "";
    element("to").value = state.zoom ? Math.round(to) : "";
    state.moving = false;
  }

  const size = (place, first) => ({width: Math.max(200, place.clientWidth), height: first ? 320 : 220});

  function summaryOf(title, tables) {
    return `${title}. ` + tables.map((table) => {
      const shown = table.mean.filter((value) => value != null);
      return `${data.runs[table.run].name}: ${number(shown[0], 4)} at step ${table.steps[0]}, ` +
        `${number(shown[shown.length - 1], 4)} at step ${table.steps[table.steps.length - 1]}`;
    }).join("; ");
  }

  function addTraining(chart) {
    const tables = tablesOf(chart);
    if (tables.length === 0) return;
    const parts = figureOf(chart.title, chart.unit, summaryOf(chart.title, tables), chart.first);
    element("training").append(parts.figure);
    const runs = chart.differences ? [0, ...tables.map((table) => table.run)] : tables.map((table) => table.run);
    const log = chart.log && state.logarithmic;
    const plot = new uPlot({
      ...size(parts.plot, chart.first),
      legend: {show: false},
      cursor: {sync: {key: "training", setSeries: false}, y: false, drag: {x: true, y: false, setScale: true}},
      scales: {x: {time: false}, y: log ? {distr: 3} : {}},
      series: seriesOf(tables), bands: bandsOf(tables), axes: axes(chart),
      hooks: {
        draw: [(u) => drawMarks(u, runs)],
        setCursor: [(u) => readout(u, parts.values, tables, LINES)],
        setScale: [(u, key) => {
          if (key !== "x" || state.moving || !u.status) return;
          const steps = u.data[0];
          const whole = u.scales.x.min <= steps[0] && u.scales.x.max >= steps[steps.length - 1];
          if (whole) setZoom(null, null, u); else setZoom(u.scales.x.min, u.scales.x.max, u);
        }],
      },
    }, alignedData(tables), parts.plot);
    const drawn = {training: true, chart, plot, parts, tables};
    parts.details.addEventListener("toggle", () => {
      if (!parts.details.open) return;
      fillTable(parts.table, plot.data[0], tables.map((table) => data.runs[table.run].name),
        tables.map((table, i) => plot.data[i * LINES + 1]));
    });
    charts.push(drawn);
  }

  function surfacesOf() {
    const all = new Map();
    data.runs.forEach((run, i) => run.surfaces.forEach((surface) => {
      const key = `${surface.group}\n${surface.label}`;
      if (!all.has(key)) all.set(key, {...surface, lines: []});
      all.get(key).lines.push({run: i, surface});
    }));
    return [...all.values()];
  }

  function addSurface({group, label, unit, lines}) {
    const tables = lines.map(({surface}) => {
      const edge = (sign) => surface.value.map(
        (value, i) => (surface.error[i] == null ? null : value + sign * surface.error[i]));
      return [surface.step, surface.value, edge(-1), edge(1)];
    });
    const parts = figureOf(`${group}: ${label}`, unit,
      summaryOf(`${group}, ${label}`, lines.map(({run, surface}) => ({run, mean: surface.value, steps: surface.step}))), false);
    element("surface-charts").append(parts.figure);
    const series = [{}];
    for (const {run} of lines) {
      const shared = {show: !state.hidden.has(run)};
      series.push({...shared, stroke: runColour(run), width: 1.5, dash: dash(run), spanGaps: true, points: {show: true, size: 6, fill: runColour(run)}},
        {...shared, stroke: null, width: 0, points: {show: false}}, {...shared, stroke: null, width: 0, points: {show: false}});
    }
    const plot = new uPlot({
      ...size(parts.plot, false),
      legend: {show: false},
      cursor: {y: false, drag: {x: false, y: false}},
      scales: {x: {time: false, range: (u, low, high) => {
        const margin = Math.max(1, 0.04 * (high - low));
        return [low - margin, high + margin];
      }}},
      series, axes: axes({digits: 4}),
      hooks: {
        draw: [(u) => drawErrorBars(u, lines)],
        setCursor: [(u) => readout(u, parts.values, lines, 3)],
      },
    }, uPlot.join(tables), parts.plot);
    parts.details.addEventListener("toggle", () => {
      if (!parts.details.open) return;
      fillTable(parts.table, plot.data[0],
        lines.flatMap(({run}) => [data.runs[run].name, "± (95%)"]),
        lines.flatMap((line, i) => [plot.data[3 * i + 1],
          plot.data[3 * i + 3].map((high, k) => (high == null ? null : high - plot.data[3 * i + 1][k]))]));
    });
    charts.push({training: false, plot, parts});
  }

  function drawAll() {
    const open = new Set(charts.filter((each) => each.parts.details.open).map((each) => each.parts.figure.querySelector("h3").textContent));
    for (const each of charts) each.plot.destroy();
    charts = [];
    element("training").replaceChildren();
    element("surface-charts").replaceChildren();
    TRAINING.forEach(addTraining);
    surfacesOf().forEach(addSurface);
    for (const each of charts) {
      each.parts.details.open = open.has(each.parts.figure.querySelector("h3").textContent);
    }
    if (state.zoom) setZoom(...state.zoom, null);
  }

  // New points into the charts as they stand; drawn anew only when there are other charts to draw.
  function update(surfacesChanged) {
    const wanted = TRAINING.map((chart) => [chart, tablesOf(chart)]).filter(([, tables]) => tables.length > 0);
    const drawn = charts.filter((each) => each.training);
    const same = wanted.length === drawn.length && wanted.every(([chart, tables], i) =>
      drawn[i].chart === chart && tables.length === drawn[i].tables.length);
    if (!same || surfacesChanged) {
      drawAll();
      return;
    }
    wanted.forEach(([, tables], i) => {
      drawn[i].tables.splice(0, tables.length, ...tables);
      state.moving = true;
      drawn[i].plot.setData(alignedData(tables), state.zoom == null);
      state.moving = false;
      if (state.zoom) drawn[i].plot.redraw();
    });
  }

  function fillControls() {
    data.runs.forEach((run, i) => {
      const box = make("input", {type: "checkbox"});
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) state.hidden.delete(i); else state.hidden.add(i);
        drawAll();
      });
      element("runs").append(make("label", {}, box, swatch(i), run.name));
    });
    element("smoothing").addEventListener("change", (event) => {
      state.smoothing = +event.target.value;
      drawAll();
    });
    element("logarithmic").addEventListener("change", (event) => {
      state.logarithmic = event.target.checked;
      drawAll();
    });
    const typed = () => {
      const steps = charts.find((each) => each.training)?.plot.data[0] || [0, 0];
      const from = element("from").value === "" ? steps[0] : +element("from").value;
      const to = element("to").value === "" ? steps[steps.length - 1] : +element("to").value;
      if (from < to) setZoom(from, to, null);
    };
    element("from").addEventListener("change", typed);
    element("to").addEventListener("change", typed);
    element("whole").addEventListener("click", () => setZoom(null, null, null));
    element("controls").addEventListener("submit", (event) => event.preventDefault());
    element("controls").hidden = false;
  }

  function watchTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const button = element("theme");
    const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      show();
      drawAll();
    });
    dark.addEventListener("change", () => {
      show();
      drawAll();
    });
    show();
  }

  function watchWidth() {
    let pending = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(() => {
        for (const each of charts) each.plot.setSize(size(each.parts.plot, each.chart?.first));
      });
    });
  }

  // News of a live run: points from the first bucket that changed, or everything anew.
  function takeNews(news) {
    const run = data.runs[0];
    const same = news.generation === live.generation && news.width === run.width;
    if (!same) {
      run.step = [];
      run.columns = {};
    }
    const known = run.step.length;
    const key = (step) => Math.floor(step / news.width);
    let kept = known;
    while (news.step.length > 0 && kept > 0 && key(run.step[kept - 1]) >= key(news.step[0])) --kept;
    for (const name of new Set([...Object.keys(run.columns), ...Object.keys(news.columns)])) {
      const column = run.columns[name] || (run.columns[name] = {mean: Array(known).fill(null)});
      const added = news.columns[name] || {};
      for (const part of news.width > 1 ? ["mean", "min", "max"] : ["mean"]) {
        column[part] = (column[part] || Array(known).fill(null)).slice(0, kept)
          .concat(added[part] || Array(news.step.length).fill(null));
      }
    }
    run.step = run.step.slice(0, kept).concat(news.step);
    run.width = news.width;
    const surfacesChanged = JSON.stringify(run.surfaces) !== JSON.stringify(news.surfaces);
    run.marks = news.marks;
    run.surfaces = news.surfaces;
    live.generation = news.generation;
    for (const [name, html] of Object.entries(news.sections || {})) {
      const place = element(`section-${name}`);
      const open = [...place.querySelectorAll("details")].map((each) => each.open);
      place.innerHTML = html;  // made and escaped by the server
      place.querySelectorAll("details").forEach((each, i) => { if (i < open.length) each.open = open[i]; });
    }
    live.sections = news.section_revision;
    if (!same || surfacesChanged || news.step.length > 0) update(surfacesChanged);
  }

  function watchRun() {
    const status = element("live-status");
    const token = new URLSearchParams(location.search).get("token");
    status.hidden = false;
    const ask = async () => {
      const run = data.runs[0];
      const query = new URLSearchParams({
        since: run.step.length > 0 ? run.step[run.step.length - 1] : -1,
        width: run.width, generation: live.generation, sections: live.sections,
      });
      if (token) query.set("token", token);
      try {
        const answer = await fetch(`data.json?${query}`, {cache: "no-store"});
        if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).trim()}`);
        takeNews(await answer.json());
        const last = run.step[run.step.length - 1];
        status.className = "";
        status.textContent = `live: ${last === undefined ? "no step yet" : `step ${last.toLocaleString("en")}`}, ` +
          `asked ${new Date().toLocaleTimeString("en-GB")}`;
      } catch (error) {
        status.className = "lost";
        status.textContent = `no answer from the dashboard (${error.message}); asking again`;
      }
      setTimeout(ask, document.visibilityState === "visible" ? live.interval_ms : 10 * live.interval_ms);
    };
    ask();
  }

  fillControls();
  watchTheme();
  watchWidth();
  drawAll();
  if (live) watchRun();
})();
